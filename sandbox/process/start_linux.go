package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

// child is a started init.
type child struct {
	pid    int
	ctl    *conn
	userNS bool
}

// start starts the init in new namespaces. The calling goroutine must be
// locked to its thread, and stay so until the init has ended.
//
// Threat: the launcher is killed and leaves an unwatched harness behind -> the
// kernel kills the init, and with it its whole process namespace, when the
// thread that forked it ends; the init also ends by itself when the control
// socket closes. Nothing is left over.
func (b *Backend) start(stdio [3]*os.File) (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	ctl := &conn{fd: pair[0]}
	defer unix.Close(pair[1])
	files := []uintptr{stdio[0].Fd(), stdio[1].Fd(), stdio[2].Fd(), uintptr(pair[1])}
	userNS := true
	pid, err := b.fork(files, userNS)
	if refusedUserNS(err) && hasCapability(unix.CAP_SYS_ADMIN) {
		// Root in a container that may not make user namespaces can make the
		// others without one. The harness loses every capability all the same.
		userNS = false
		pid, err = b.fork(files, userNS)
	}
	if err != nil {
		ctl.close()
		return nil, namespaceError(err)
	}
	return &child{pid: pid, ctl: ctl, userNS: userNS}, nil
}

// kill ends the init and everything inside.
func (c *child) kill() { unix.Kill(c.pid, unix.SIGKILL) } //nolint:errcheck // not yet waited for, so it is ours

// wait waits until the init and everything inside is gone.
func (c *child) wait() {
	for {
		var st unix.WaitStatus
		if _, err := unix.Wait4(c.pid, &st, 0, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// stageEnv is the init's environment: nothing of the person's, and no search
// for a processor limit, which the Go runtime would make at every start.
var stageEnv = []string{"GOMAXPROCS=2"}

// namespaces is what the init gets of its own.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

func (b *Backend) fork(files []uintptr, userNS bool) (int, error) {
	attr := &syscall.SysProcAttr{
		Cloneflags: namespaces,
		Pdeathsig:  syscall.SIGKILL,
		// A group of its own, so that no "kill 0" reaches in or out.
		Setpgid: true,
		// An ordinary user's capabilities do not survive execve unless ambient.
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP},
	}
	if b.RunAs != nil {
		attr.Credential = &syscall.Credential{Uid: b.RunAs.UID, Gid: b.RunAs.GID, Groups: b.RunAs.Groups}
	}
	if userNS {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		if err := b.mapIDs(attr); err != nil {
			return 0, err
		}
	}
	return syscall.ForkExec(b.hooks.executable(), []string{stageName}, &syscall.ProcAttr{Dir: "/", Env: stageEnv, Files: files, Sys: attr})
}

// mapIDs maps ids to themselves: one user for an ordinary user, everything for
// root, so that "ls -l" inside tells the truth.
func (b *Backend) mapIDs(attr *syscall.SysProcAttr) error {
	if os.Geteuid() != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.GidMappingsEnableSetgroups = false
		return nil
	}
	var err error
	if attr.UidMappings, err = identityMap("/proc/self/uid_map"); err != nil {
		return err
	}
	if attr.GidMappings, err = identityMap("/proc/self/gid_map"); err != nil {
		return err
	}
	attr.GidMappingsEnableSetgroups = true
	return nil
}

// identityMap maps every id that this namespace knows to itself.
func identityMap(path string) ([]syscall.SysProcIDMap, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var maps []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var inside, outside, size int
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		maps = append(maps, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
	}
	return maps, nil
}

func refusedUserNS(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hasCapability reports whether this process has capability c now.
func hasCapability(c uint) bool {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		if hex, ok := strings.CutPrefix(sc.Text(), "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && set&(1<<c) != 0
		}
	}
	return false
}

const doctorFix = "run: launch doctor"

// namespaceError says what forbids the namespaces.
func namespaceError(err error) error {
	what := "the kernel refused new namespaces: " + err.Error()
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		what = "no user namespace left (sysctl user.max_user_namespaces): " + err.Error()
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		what = "user namespaces are forbidden here, by a sysctl, by AppArmor or by a container's seccomp profile: " + err.Error()
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS):
		what = "this kernel lacks a namespace type: " + err.Error()
	}
	return &sandbox.CapabilityError{Isolation: isolationNetns, What: what, Fix: doctorFix}
}

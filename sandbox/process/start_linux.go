package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
	"egressd/sandbox/process/control"
	"egressd/sandbox/process/inside"
)

// child is a started init.
type child struct {
	pid    int
	ctl    *control.Conn
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
	ctl := &control.Conn{FD: pair[0]}
	defer unix.Close(pair[1])
	files := []uintptr{stdio[0].Fd(), stdio[1].Fd(), stdio[2].Fd(), uintptr(pair[1])}
	userNS := !b.hooks.noUserNS
	pid, err := b.fork(files, userNS)
	if userNS && refusedUserNS(err) && hasCapability(unix.CAP_SYS_ADMIN) {
		// Root in a container that may not make user namespaces can make the
		// others without one. The harness loses every capability all the same.
		userNS = false
		pid, err = b.fork(files, userNS)
	}
	if err != nil {
		ctl.Close()
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
	if !userNS {
		return b.exec(files, attr)
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	m, err := idMaps()
	if err != nil {
		return 0, err
	}
	if b.RunAs != nil {
		// Becoming another user needs the maps first, so Go writes them between
		// fork and execve, which costs a copy of this process.
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = m.uid, m.gid, m.setgroups
		return b.exec(files, attr)
	}
	pid, err := b.exec(files, attr)
	if err != nil {
		return 0, err
	}
	// The init waits for its configuration before it looks at anything, so the
	// maps can be written while it starts.
	if err := m.write(pid); err != nil {
		c := child{pid: pid}
		c.kill()
		c.wait()
		return 0, err
	}
	return pid, nil
}

func (b *Backend) exec(files []uintptr, attr *syscall.SysProcAttr) (int, error) {
	return syscall.ForkExec(b.hooks.executable(), []string{inside.Name}, &syscall.ProcAttr{Dir: "/", Env: stageEnv, Files: files, Sys: attr})
}

// idMap is a user namespace's ids.
type idMap struct {
	uid, gid  []syscall.SysProcIDMap
	setgroups bool
}

// idMaps maps ids to themselves: one user for an ordinary user, everything for
// root, so that "ls -l" inside tells the truth.
func idMaps() (m idMap, err error) {
	if os.Geteuid() != 0 {
		m.uid = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		m.gid = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		return m, nil
	}
	m.setgroups = true
	if m.uid, err = identityMap("/proc/self/uid_map"); err != nil {
		return m, err
	}
	m.gid, err = identityMap("/proc/self/gid_map")
	return m, err
}

// write writes the maps of process pid's user namespace.
func (m idMap) write(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	if !m.setgroups {
		if err := os.WriteFile(dir+"/setgroups", []byte("deny"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for name, ids := range map[string][]syscall.SysProcIDMap{"/uid_map": m.uid, "/gid_map": m.gid} {
		var text strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&text, id.ContainerID, id.HostID, id.Size)
		}
		if err := os.WriteFile(dir+name, []byte(text.String()), 0); err != nil {
			return err
		}
	}
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

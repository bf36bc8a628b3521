package process

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
	"egressd/sandbox/process/control"
	_ "egressd/sandbox/process/inside" // becomes the init when this program is executed as one
	"egressd/sandbox/process/spawn"
)

// child is a started init and its control connection.
type child struct {
	*spawn.Child
	ctl *control.Conn
}

func newChild(c *spawn.Child) *child { return &child{c, control.NewConn(c.Control)} }

// start reports an init that waits for its configuration: the one that was started
// ahead if it fits this run, else a new one.
func (b *Backend) start(stdio [3]*os.File, user *sandbox.Cred) (*child, error) {
	if b.Early != nil {
		c, err := b.Early.Take() // an error comes again below, with its explanation
		switch {
		case err == nil && b.fits(stdio, user):
			return newChild(c), nil
		case err == nil:
			c.Discard()
		}
	}
	return b.startAnew(stdio, user)
}

// fits reports whether an init that was started without a configuration has begun
// what this run needs.
func (b *Backend) fits(stdio [3]*os.File, user *sandbox.Cred) bool {
	for i, f := range stdio {
		if f.Fd() != uintptr(i) {
			return false
		}
	}
	return user == nil && b.Limits == (Limits{}) && b.CaptureMode == "" && len(b.Publish)+len(b.HostPorts) == 0 && b.hooks.plain()
}

func (b *Backend) startAnew(stdio [3]*os.File, user *sandbox.Cred) (*child, error) {
	o := spawn.Options{Executable: b.hooks.exe, NoUserNS: b.hooks.noUserNS, Tell: spawn.Wait}
	for i, f := range stdio {
		o.Files[i] = f.Fd()
	}
	if user != nil {
		o.RunAs = &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups}
	}
	c, err := spawn.Start(o)
	if !o.NoUserNS && refusedUserNS(err) && hasCapability(unix.CAP_SYS_ADMIN) {
		// Root in a container that may not make user namespaces can make the
		// others without one. The program loses every capability all the same.
		o.NoUserNS = true
		c, err = spawn.Start(o)
	}
	if err != nil {
		return nil, namespaceError(err)
	}
	return newChild(c), nil
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

// usedUp names the kind of namespace of which this machine allows none, and the
// sysctl that says so.
func usedUp() string {
	for _, kind := range []string{"user", "net", "mnt", "pid", "ipc", "uts"} {
		limit, err := os.ReadFile("/proc/sys/user/max_" + kind + "_namespaces")
		if err == nil && strings.TrimSpace(string(limit)) == "0" {
			return kind + " namespace is allowed here (sysctl user.max_" + kind + "_namespaces is 0)"
		}
	}
	return "namespace is left (sysctls user.max_user_namespaces, user.max_net_namespaces and their like)"
}

// namespaceError reports what forbids the namespaces.
func namespaceError(err error) error {
	what := "the kernel refused new namespaces: " + err.Error()
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		what = "no " + usedUp() + ": " + err.Error()
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		what = "user namespaces are forbidden here, by a sysctl, by AppArmor or by a container's seccomp profile: " + err.Error()
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS):
		what = "this kernel lacks a namespace type: " + err.Error()
	}
	return &sandbox.CapabilityError{Isolation: isolationNetns, What: what, Fix: doctorFix}
}

package inside

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/sandbox/process/control"
)

// A path that only begins like a root is the host's: to take it for a private
// one would let the run write there.
func TestBelow(t *testing.T) {
	roots := []string{"/tmp", "/var/tmp"}
	for path, want := range map[string]bool{
		"/tmp/x": true, "/var/tmp/x/y": true,
		"/tmp": false, "/tmpx": false, "/tmp2/x": false, "/var": false, "": false, "/": false,
	} {
		if got := below(path, roots); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// Places are made only where the host does not notice.
func TestOurs(t *testing.T) {
	b := &builder{initProcess: &initProcess{cfg: control.Config{Plan: control.Plan{
		Roots: []string{"/tmp"},
		Shown: []control.Bind{{Path: "/shown", Dir: true}, {Path: "/etc/one"}},
	}}}}
	for path, want := range map[string]bool{
		"/tmp/a": true, "/shown/a": true,
		"/shown": false, "/shownx/a": false, "/etc/one/a": false, "/etc/two": false,
	} {
		if got := b.ours(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestNearest(t *testing.T) {
	dir := host(t, map[string]string{"a/b/": "", "a/file": "x"})
	for path, want := range map[string]string{
		"/a/b/c/d": dir + "/a/b", "/a/b": dir + "/a", "/a/file/x": dir + "/a", "/x/y": dir,
	} {
		if got := nearest(dir + path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := nearest("/no such directory"); got != "/" {
		t.Errorf("got %s", got)
	}
}

// The person reads which step failed; those behind it must not run, as they
// count on it.
func TestStepsStopAtTheFirstFailure(t *testing.T) {
	b := &builder{initProcess: &initProcess{cfg: control.Config{Skip: []string{"skipped"}}}}
	var ran []string
	note := func(name string, err error) step {
		return step{name, func() error { ran = append(ran, name); return err }}
	}
	err := b.steps([]step{note("first", nil), note("skipped", nil), note("second", unix.EPERM), note("third", nil)})
	if got := strings.Join(ran, " "); got != "first second" {
		t.Errorf("ran %s", got)
	}
	var se *stepError
	if !errors.As(err, &se) || se.step != "mounts" || !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "second") {
		t.Errorf("got %v", err)
	}
}

// The supervisor learns the step and the error number, from which it says what
// to change on this machine.
func TestFailReport(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	in := &initProcess{ctl: control.NewConn(fds[0])}
	in.fail(&stepError{"mounts", errors.Join(errors.New("private"), unix.ENOSYS)})
	in.fail(&stepError{"start", errors.New("no words")})
	for _, want := range []control.FailReport{
		{Step: "mounts", Err: "private\n" + unix.ENOSYS.Error(), Errno: unix.ENOSYS},
		{Step: "start", Err: "no words"},
	} {
		m, _, err := control.NewConn(fds[1]).Receive()
		if err != nil || m.Failed == nil || *m.Failed != want {
			t.Errorf("got %+v, %v, want %+v", m.Failed, err, want)
		}
	}
}

// The exit code is a shell's, and a signal is not lost in it.
func TestExited(t *testing.T) {
	for _, c := range []struct {
		status syscall.WaitStatus
		want   control.ExitReport
	}{
		{0, control.ExitReport{}},
		{7 << 8, control.ExitReport{Code: 7}},
		{255 << 8, control.ExitReport{Code: 255}},
		{syscall.WaitStatus(syscall.SIGKILL), control.ExitReport{Code: 137, Signal: syscall.SIGKILL}},
		{syscall.WaitStatus(syscall.SIGSEGV) | 0x80, control.ExitReport{Code: 139, Signal: syscall.SIGSEGV}}, // with a core
	} {
		if got := exited(c.status); *got != c.want {
			t.Errorf("%#x: %+v, want %+v", int(c.status), *got, c.want)
		}
	}
}

// A server inside is found at either loopback address, and its absence is an
// error for both.
func TestDialLoopback(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err)
			continue
		}
		port := uint16(ln.Addr().(*net.TCPAddr).Port)
		f, err := dialLoopback(port)
		if err != nil {
			t.Errorf("%s: %v", at, err)
		} else {
			f.Close()
		}
		ln.Close()
		if f, err := dialLoopback(port); err == nil {
			f.Close()
			t.Errorf("%s: connected to nobody", at)
		} else if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

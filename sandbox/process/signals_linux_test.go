package process

import (
	"syscall"
	"testing"
)

// TestSignalInit sends everything that can be sent to pid 1 inside.
func TestSignalInit(t *testing.T) {
	res := sh(t, new(Backend), `i=1; while [ $i -le 64 ]; do kill -$i 1 2>/dev/null; i=$((i+1)); done; sleep 0.1; echo alive`)
	if res.err != nil || res.ExitCode != 0 || res.out != "alive\n" {
		t.Errorf("exit code %d, %v: %.300s", res.ExitCode, res.err, res.out)
	}
}

// What the inside does to the terminal must not outlast it.
func TestTerminalExclusive(t *testing.T) {
	python := needPython(t)
	c := atTerminal(t, "/bin/sh", "-c", self(t)+` launch `+python+` -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCEXCL)'; true >/dev/tty && echo "op""en"`)
	c.expect("open")
}

// Files of the run are for every user inside, whatever the launcher's umask.
func TestUmask(t *testing.T) {
	needNamespaces(t)
	old := syscall.Umask(0o777)
	defer syscall.Umask(old)
	res := sh(t, new(Backend), "stat -c %a /run/egressd/resolv.conf")
	if res.err != nil || res.out != "444\n" {
		t.Errorf("%q, %v", res.out, res.err)
	}
}

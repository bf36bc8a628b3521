package process

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/sandbox"
)

// A descriptor made outside works outside, whoever holds it.
func TestStandardFiles(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	tcp, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	protected := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(protected, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name string
		file *os.File
		want string // in the error; "" none
	}{
		{"TCP connection", dup(t, tcp.(*net.TCPConn)), "a socket"},
		{"UDP socket", dup(t, udp), "a socket"},
		{"unix datagram socket", pair(t, syscall.SOCK_DGRAM), "a socket"},
		{"unconnected unix stream", lone(t), "a socket"},
		{"directory", open(t, "/"), "a directory"},
		{"protected file", open(t, protected), "must not change"},
		{"connected unix stream", pair(t, syscall.SOCK_STREAM), ""},
		{"another file", open(t, "/etc/passwd"), ""},
		{"null", open(t, os.DevNull), ""},
	}
	for _, r := range rows {
		res := run(t, &Backend{}, sandbox.Spec{Argv: []string{"/bin/true"}, Stdin: r.file, Protect: []string{protected}})
		switch {
		case r.want == "" && res.err != nil:
			t.Errorf("%s: %v", r.name, res.err)
		case r.want != "" && (res.err == nil || !strings.Contains(res.err.Error(), r.want)):
			t.Errorf("%s: got %v, want an error with %q", r.name, res.err, r.want)
		}
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func dup(t *testing.T, c interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func pair(t *testing.T, kind int) *os.File {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fds[1]) })
	f := os.NewFile(uintptr(fds[0]), "pair")
	t.Cleanup(func() { f.Close() })
	return f
}

func lone(t *testing.T) *os.File {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "lone")
	t.Cleanup(func() { f.Close() })
	return f
}

// A signal during the set-up is not lost: it ends the run, or the program.
func TestSignalTooEarly(t *testing.T) {
	needNamespaces(t)
	res, err := new(Backend).Run(t.Context(), sandbox.Spec{
		Argv: []string{"/bin/sleep", "20"}, Dir: "/", Timeout: 10 * time.Second,
		Forwarding: func() {
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
				t.Error(err)
			}
		},
	})
	if res.ExitCode != sandbox.ExitSignal+int(syscall.SIGUSR1) {
		t.Errorf("exit code %d, %v", res.ExitCode, err)
	}
}

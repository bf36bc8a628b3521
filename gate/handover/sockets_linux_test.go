package handover

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/event/eventtest"
)

// Sockets that are none of ours are refused, whatever else they are.
func TestForeignSockets(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	file := func(f *os.File, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct {
		name   string
		change func(*Sockets)
	}{
		{"a file", func(s *Sockets) { s.Explicit = file(os.Open("/proc/self/status")) }},
		{"a UDP socket that should listen", func(s *Sockets) { s.Explicit = udpFile(t) }},
		{"a listener for UDP", func(s *Sockets) { s.DNSUDP = tcpFile(t) }},
		{"a socket that does not listen", func(s *Sockets) { s.DNSTCP = rawSocket(t, unix.AF_INET, unix.SOCK_STREAM, 0) }},
		{"a unix listener", func(s *Sockets) {
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@egressd-test-listener", Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			s.DNSTCP = file(ln.File())
		}},
		{"a pipe for the refusals", func(s *Sockets) {
			r, w, err := os.Pipe()
			_ = file(r, err)
			t.Cleanup(func() { w.Close() })
			s.Refusals = r
		}},
		{"a netlink socket of another kind", func(s *Sockets) { s.Refusals = rawSocket(t, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }},
		{"a file as a transparent door", func(s *Sockets) { s.Transparent = []*os.File{file(os.Open("/dev/zero"))} }},
		{"a file as a port of the host", func(s *Sockets) { s.Localhost = []LocalPort{{1, file(os.Open("/dev/zero"))}} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Dial(t.Context(), d.path, offer("one"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := loopback(t)
			tt.change(&s)
			if err := r.Open(t.Context(), nil, s); err == nil {
				t.Error("it was accepted")
			}
			d.record.wait(t, "the end", func(e eventtest.Line) bool { return e.Type == "session.closed" && e.Error != "" })
			d.settle(t)
		})
	}
}

// settle waits until no session counts.
func (d *daemon) settle(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(patience); len(d.list()) > 0; wait(t.Context(), time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("a session still counts")
		}
	}
}

func rawSocket(t *testing.T, domain, typ, proto int) *os.File {
	t.Helper()
	fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "socket")
}

// Whatever sessions end by, no descriptor stays.
func TestNoDescriptorStays(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	d.join(t, offer("warm")).leave()
	d.settle(t)
	before := descriptors(t)
	for range 20 {
		d.join(t, offer("one")).leave()
		d.settle(t)
		r, err := Dial(t.Context(), d.path, offer("two"))
		if err != nil {
			t.Fatal(err)
		}
		s := loopback(t)
		s.DNSTCP, s.DNSUDP = s.DNSUDP, s.DNSTCP // refused
		_ = r.Open(t.Context(), nil, s)
		_ = r.Close()
		d.settle(t)
		if r, err = Dial(t.Context(), d.path, offer("three")); err != nil {
			t.Fatal(err)
		}
		s = loopback(t)
		_ = r.link.send(kindDoors, make([]byte, maxFrame+1), s.files()...) // too long
		_ = errors.Join(s.Close(), r.Close())
		d.settle(t)
	}
	if after := descriptors(t); after > before+2 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "c.sock")
	ln, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another egressd answers") {
		t.Errorf("a second one: %v", err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as after kill -9
	ln.Close()
	if ln, err = Listen(t.Context(), path); err != nil {
		t.Fatalf("after a daemon that died: %v", err)
	}
	ln.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("in place of a file: %v", err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), filepath.Join(dir, "d.sock")); err == nil || !strings.Contains(err.Error(), "everybody may write") {
		t.Errorf("where everybody may write: %v", err)
	}
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if ln, err = Listen(t.Context(), filepath.Join(below, "d.sock")); err != nil {
		t.Errorf("below a sticky directory: %v", err)
	} else {
		ln.Close()
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), filepath.Join(below, "d.sock")); err == nil || !strings.Contains(err.Error(), "everybody may write in "+dir) {
		t.Errorf("below a directory that everybody may write: %v", err)
	}
	if _, err := Dial(t.Context(), path, Offer{}); err == nil {
		t.Error("a file was dialled")
	}
}

func TestDialRefuses(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	dir := filepath.Dir(d.path)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), d.path, offer("one")); err == nil || !strings.Contains(err.Error(), "everybody may write") {
		t.Errorf("where everybody may write: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "start egressd", dir: "not a socket"} {
		if _, err := Dial(t.Context(), path, offer("one")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

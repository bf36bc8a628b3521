package e2e

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// canaries are the things outside that are not on the network.
type canaries struct {
	dir      string   // the person's, not hidden inside
	sockets  []string // path sockets that answer
	dgrams   []string
	abstract string
	policy   string // the policy file of the run
	secret   string // a value in launch's own environment that was not passed on
	env      []string
	files    []*os.File // descriptors that launch inherits
	shmKey   int
	pid      int // of this test: a process outside
	record   *heardBytes
}

// heardBytes is what arrived at any unix socket.
type heardBytes struct {
	mu  sync.Mutex
	got []string
}

func (h *heardBytes) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, string(b))
}

func (c canaries) heard() []string {
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	return append([]string(nil), c.record.got...)
}

func (c canaries) reset() {
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	c.record.got = nil
}

// plantCanaries listens wherever this process may, and writes the files that
// must come out of the run as they went in.
func plantCanaries(t *testing.T, who person) canaries {
	t.Helper()
	c := canaries{dir: who.home(t), secret: "e2e-launcher-secret", pid: os.Getpid(), record: &heardBytes{}}
	c.env = []string{"E2E_LAUNCHER_SECRET=" + c.secret}
	places := []string{c.dir, "/tmp", "/var/tmp", "/dev/shm", "/run", filepath.Join("/run/user", "e2e"), "/tmp/.X11-unix"}
	for _, dir := range places {
		c.listenIn(t, dir)
	}
	c.abstract = "egressd-e2e-" + filepath.Base(c.dir)
	c.listen(t, "@"+c.abstract)
	c.policy = filepath.Join(c.dir, "policy.yaml")
	if err := os.WriteFile(c.policy, []byte("allow:\n  - other.example.com\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(c.policy, who.uid, who.uid); err != nil {
			t.Fatal(err)
		}
	}
	c.inherit(t)
	c.shm(t)
	return c
}

// listenIn plants a stream and a datagram socket in dir, where it may.
func (c *canaries) listenIn(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		if os.MkdirAll(dir, 0o755) != nil {
			return
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // somebody else's by now: theirs
	}
	path := filepath.Join(dir, "e2e-"+filepath.Base(c.dir)+".sock") // short: sun_path holds 107 bytes, with /proc/self/root in front of it too
	if c.listen(t, path) {
		c.sockets = append(c.sockets, path)
	}
	dgram := path + ".dgram"
	pc, err := net.ListenPacket("unixgram", dgram)
	if err != nil {
		return
	}
	_ = os.Chmod(dgram, 0o777) // a socket that nobody may open is no canary: the control tells
	c.dgrams = append(c.dgrams, dgram)
	t.Cleanup(func() { _ = pc.Close(); _ = os.Remove(dgram) })
	go c.hearPackets(pc)
}

func (c *canaries) listen(t *testing.T, path string) bool {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return false
	}
	if path[0] != '@' {
		_ = os.Chmod(path, 0o777) // as above
	}
	t.Cleanup(func() { _ = ln.Close() })
	go c.hear(ln)
	return true
}

func (c *canaries) hear(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // a dead connection fails in the read
		buf := make([]byte, 256)
		n, _ := conn.Read(buf)
		c.record.add(buf[:n])
		_, _ = io.WriteString(conn, job.Marker+"\n") // the client may be gone
		_ = conn.Close()
	}
}

func (c *canaries) hearPackets(pc net.PacketConn) {
	buf := make([]byte, 256)
	for {
		n, _, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		c.record.add(buf[:n])
	}
}

// inherit opens descriptors that launch gets and must not pass on: a connected
// socket of the world, a directory, a secret file.
func (c *canaries) inherit(t *testing.T) {
	conn, err := net.Dial("tcp", "11.99.99.99:8080")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	sock, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sock.Close(); _ = dir.Close() })
	c.files = []*os.File{sock, dir}
}

// shm makes a System V segment that everybody may attach.
func (c *canaries) shm(t *testing.T) {
	c.shmKey = 0x65326500 + os.Getpid()&0xff
	id, err := unix.SysvShmGet(c.shmKey, 4096, 0o666|unix.IPC_CREAT)
	if err != nil {
		t.Logf("no System V segment: %v", err)
		return
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
}

// checkFiles looks at what must not have been changed from inside.
func (c canaries) checkFiles(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(c.policy)
	if err != nil || string(data) != "allow:\n  - other.example.com\n" {
		t.Errorf("the policy file was changed from inside: %q, %v", data, err)
	}
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe"} {
		if data, err := os.ReadFile(path); err == nil && len(data) > 7 && string(data[:6]) == "inside" {
			t.Errorf("%s was written from inside: %q", path, data)
		}
	}
}

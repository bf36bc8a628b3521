package unixdiag

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// find reports the socket that is bound to path, as the kernel was told it.
func find(t *testing.T, c *Conn, states uint32, path string) (Socket, bool) {
	t.Helper()
	var found Socket
	err := c.Each(states, func(s Socket) bool {
		if s.Path == path {
			found = s
		}
		return found.Path == ""
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, found.Path != ""
}

func TestEach(t *testing.T) {
	c, err := Open()
	if err != nil {
		t.Skipf("no unix_diag here: %v", err)
	}
	defer c.Close()
	dir := t.TempDir()
	stream, datagram := filepath.Join(dir, "s"), filepath.Join(dir, "d")
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	pc, err := lc.ListenPacket(t.Context(), "unixgram", datagram)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	for _, tt := range []struct {
		path   string
		states uint32
		want   bool
	}{{stream, Any, true}, {stream, Listening, true}, {datagram, Any, true}, {datagram, Listening, false}, {dir, Any, false}} {
		s, ok := find(t, c, tt.states, tt.path)
		if ok != tt.want {
			t.Errorf("%s in %#x: %v", tt.path, tt.states, ok)
		}
		if !ok {
			continue
		}
		fi, err := os.Lstat(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(tt.path, &st); err != nil {
			t.Fatal(err)
		}
		if s.Inode != uint32(st.Ino) {
			t.Errorf("%s: number %d, %v has %d", tt.path, s.Inode, fi.Name(), st.Ino)
		}
	}
	ln.Close()
	if _, ok := find(t, c, Any, stream); ok {
		t.Error("a closed socket is there")
	}
}

// A message that lies about its lengths is no socket.
func TestParseLies(t *testing.T) {
	whole := make([]byte, messageSize, 64)
	whole = append(whole, 8, 0, attrName, 0, '/', 'a', 0, 0, 12, 0, attrVFS, 0, 7, 0, 0, 0, 1, 0, 0x80, 0)
	if s, ok := parse(whole); !ok || s.Path != "/a" || s.Inode != 7 || s.Major != 8 || s.Minor != 1 {
		t.Errorf("%+v, %v", s, ok)
	}
	for n := range len(whole) {
		if s, ok := parse(whole[:n]); ok {
			t.Errorf("%d of %d bytes are %+v", n, len(whole), s)
		}
	}
	whole[messageSize] = 200
	if s, ok := parse(whole); ok {
		t.Errorf("an attribute too long: %+v", s)
	}
}

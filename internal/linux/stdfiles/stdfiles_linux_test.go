package stdfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	open := func(path string) *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
		if path == dir {
			f, err = os.Open(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	sockets := func(kind int) *os.File {
		t.Helper()
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fds[1]) })
		f := os.NewFile(uintptr(fds[0]), "socket")
		t.Cleanup(func() { f.Close() })
		return f
	}
	udp, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	network := os.NewFile(uintptr(udp), "udp")
	t.Cleanup(func() { network.Close() })
	kept := filepath.Join(dir, "kept")
	null := open(os.DevNull)
	for _, tt := range []struct {
		name string
		file *os.File
		says string // "": it is fine
	}{
		{"a device", null, ""},
		{"a file", open(filepath.Join(dir, "file")), ""},
		{"a connected stream", sockets(unix.SOCK_STREAM), ""},
		{"a directory", open(dir), "directory"},
		{"a datagram socket", sockets(unix.SOCK_DGRAM), "socket"},
		{"a network socket", network, "socket"},
		{"a protected file", open(kept), "must not change"},
	} {
		for i := range 3 {
			files := [3]*os.File{null, null, null}
			files[i] = tt.file
			err := Check(files, []string{kept, filepath.Join(dir, "missing")})
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

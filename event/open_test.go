//go:build unix

package event

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "e")
	for range 2 { // made, then appended to
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(path); string(data) != "xx" {
		t.Errorf("got %q", data)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{link, "symbolic link"},
		{fifo, "nobody reads"},
		{dir, "directory"},
		{filepath.Join(dir, "none", "e"), "no such file"},
	} {
		if f, err := Open(tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open(%s) = %v, %v; want %q", tt.path, f, err, tt.want)
		}
	}
}

// A FIFO with a reader, and what a shell's >(...) makes.
func TestOpenPipes(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(fifo, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := os.NewFile(uintptr(fd), fifo)
	defer r.Close()
	f, err := Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: f}
	if err := w.Emit(Event{Body: asked("")}); err != nil {
		t.Error(err)
	}
	g, err := Open("/dev/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*os.File{f, g} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

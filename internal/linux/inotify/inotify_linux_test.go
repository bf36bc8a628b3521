package inotify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEvents(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	dir := t.TempDir()
	wd, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_DELETE_SELF)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, name := range []string{"a", "sixteen bytes ..", "seventeen bytes .."} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%d %x %s", wd, unix.IN_CREATE, name))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	want = append(want, fmt.Sprintf("%d %x ", wd, unix.IN_DELETE_SELF), fmt.Sprintf("%d %x ", wd, unix.IN_IGNORED))
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range Events(buf[:n]) {
		got = append(got, fmt.Sprintf("%d %x %s", e.WD, e.Mask, e.Name))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for cut := range n {
		whole := 0
		for range Events(buf[:cut]) {
			whole++
		}
		if whole >= len(want) {
			t.Errorf("%d events in %d of %d bytes", whole, cut, n)
		}
	}
}

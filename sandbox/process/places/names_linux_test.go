package places

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a list of a directory says is what a look at each name says.
func TestExpect(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/.aws", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/.netrc", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".netrc", dir+"/.pgpass"); err != nil {
		t.Fatal(err)
	}
	looks, lists := NewNames(), NewNames()
	lists.expect(dir)
	for name, want := range map[string]uint32{"/.aws": unix.S_IFDIR, "/.netrc": unix.S_IFREG, "/.pgpass": unix.S_IFLNK, "/.ssh": 0} {
		if a, b := looks.kind(dir+name), lists.kind(dir+name); a != want || b != want {
			t.Errorf("%s is %o by a look and %o by a list, want %o", name, a, b, want)
		}
	}
	if real, err := lists.Resolve(dir + "/.pgpass"); real != dir+"/.netrc" || err != nil {
		t.Errorf("the link leads to %s, %v", real, err)
	}
	if _, err := lists.Resolve(dir + "/.ssh/config"); err == nil {
		t.Error("what is not there leads somewhere")
	}
}

// A directory that takes names in any case must not hide a key from the list. The
// file systems of this machine need not have one, so the list is looked at itself.
func TestExpectAnyCase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/.SSH", 0o700); err != nil {
		t.Fatal(err)
	}
	n := NewNames()
	n.expect(dir)
	if listed := n.listed[dir]; listed != nil && !listed[fold(".ssh")] {
		t.Error("a list with .SSH says that .ssh is not there")
	}
	if err := os.Mkdir(dir+"/.ſſh", 0o700); err != nil { // small letters of it are .ssh
		t.Fatal(err)
	}
	n = NewNames()
	if n.expect(dir); n.listed[dir] != nil {
		t.Error("a list is used although only the kernel knows what its names are like")
	}
}

// A list that ended at its bound does not say what is not there.
func TestExpectBound(t *testing.T) {
	dir := t.TempDir()
	for i := range maxEntries + 1 {
		if err := os.Link(dir+"/0", fmt.Sprint(dir, "/", i)); err == nil {
			continue
		}
		if err := os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := NewNames()
	if n.expect(dir); n.listed[dir] != nil {
		t.Errorf("a list of %d names is used", len(n.listed[dir]))
	}
	seen := 0
	if n.list.each(dir, func([]byte, uint8) { seen++ }); seen != maxEntries {
		t.Errorf("%d entries were read, want %d", seen, maxEntries)
	}
}

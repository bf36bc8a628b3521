package vercel

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/sandbox/vercel/fake"
)

// large makes a workspace of 10 MB that does not compress.
func (w *world) large() {
	w.Helper()
	for _, name := range []string{"big/a", "big/b", "big/c", "big/d", "big/e"} {
		data := make([]byte, 2<<20)
		_, _ = rand.Read(data)
		w.files(name, string(data))
	}
}

// brought is what came back last, and how many bytes that took.
func (w *world) brought(script string) (paths []string, n int64) {
	w.Helper()
	w.fetched.Store(0)
	w.changes = nil
	w.ok(0, script)
	c := w.changes[0]
	if len(c.Conflicts)+len(c.Refused) > 0 {
		w.Errorf("conflicts %q, refused %q", c.Conflicts, c.Refused)
	}
	for _, part := range []struct {
		sign  string
		names []string
	}{{"+", c.Added}, {"~", c.Changed}, {"-", c.Deleted}} {
		for _, name := range part.names {
			paths = append(paths, part.sign+name)
		}
	}
	return paths, w.fetched.Load()
}

// What comes back costs as much as what changed, not as the workspace.
func TestDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.large()
	w.files("f", "one", "mode", "m", "old", "o", "gone/x", "g", "type", "t", "kind/y", "k", "stamp", "12345", "odd\n\\n\xff", "p", "-rf", "q")
	must(t, os.Symlink("f", filepath.Join(w.dir, "link")))
	for _, tt := range []struct {
		script string
		most   int64
		want   string
	}{
		{"true", 100 << 10, ""},
		{"echo two >f", 100 << 10, "~f"},
		{"head -c 1000000 /dev/urandom >big/a", 1_200_000, "~big/a"},
		{"rm -r gone; chmod 700 mode; mv old new; ln -sf mode link", 100 << 10, "+new ~link ~mode -gone -gone/x -old"},
		{"rm type; mkdir type; echo 1 >type/z; rm -r kind; ln -s f kind; mkdir empty", 100 << 10, "+empty +type/z ~kind -kind/y -type"},
		{"touch -r stamp /tmp/was; printf 54321 >stamp; touch -r /tmp/was stamp", 100 << 10, "~stamp"},
		{`for f in odd*; do echo 1 >"$f"; done; echo 2 >./-rf; mkdir .git node_modules; echo 3 >.git/config`, 100 << 10, "~-rf ~odd\n\\n\xff"},
		{"chmod 600 big/a; chmod 755 big/b", 100 << 10, "~big/a ~big/b"}, // not the content
		{"rm big/e; ln big/d big/h; ln f hard", 3 << 20, "+big/h +hard -big/e"},
	} {
		got, n := w.brought(tt.script)
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%s: %q came back, want %q", tt.script, g, tt.want)
		}
		if n == 0 || n > tt.most {
			t.Errorf("%s: %d bytes, want at most %d", tt.script, n, tt.most)
		}
		t.Logf("%s: %d bytes", tt.script, n)
	}
	for name, want := range map[string]os.FileMode{"big/a": 0o600, "big/b": 0o755} {
		if info, err := os.Stat(filepath.Join(w.dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	w.has("stamp", "54321")
	w.has("odd\n\\n\xff", "1\n")
	w.has("-rf", "2\n")
	w.has("hard", "two\n")
	w.has(".git/config", "-")
	w.clean()
}

// What only came back, and is the same in both places, does not travel again.
func TestDifferenceOfWhatWasMadeThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.large()
	w.files(".gitignore", "out\n")
	w.back.Name = "kept"
	w.back.Synced = &memory{}
	if got, n := w.brought("mkdir out; head -c 2000000 /dev/urandom >out/o"); !slices.Equal(got, []string{"+out/o"}) || n < 2_000_000 {
		t.Error(got, n)
	}
	if got, n := w.brought("true"); len(got) > 0 || n > 100<<10 {
		t.Error(got, n)
	}
}

// Where the list cannot be made there, everything is fetched as one archive.
func TestDifferenceUnlisted(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"closed": "mkdir shut; echo 1 >shut/in; chmod 0 shut",
		"sums":   "echo 1 >private; chmod 0 private",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			w.large()
			w.files("f", "one")
			w.ok(0, script+"; echo two >f; rm big/e")
			w.has("f", "two\n")
			w.has("big/e", "-")
			if w.changes[0].Deleted == nil || len(w.changes[0].Deleted) != 1 {
				t.Error(w.changes[0].Deleted)
			}
			w.clean()
		})
	}
}

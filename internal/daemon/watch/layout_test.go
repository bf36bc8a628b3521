package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// configMap lays files out as the kubelet does, and swaps them as it does.
type configMap struct {
	t       *testing.T
	dir     string
	version int
}

func (c *configMap) publish(files map[string]string) {
	c.t.Helper()
	c.version++
	data := filepath.Join(c.dir, "..2026_11_21_"+string(rune('a'+c.version)))
	must(c.t, os.Mkdir(data, 0o755))
	for name, text := range files {
		write(c.t, filepath.Join(data, name), text)
	}
	old, _ := os.Readlink(filepath.Join(c.dir, "..data"))
	must(c.t, os.Symlink(filepath.Base(data), filepath.Join(c.dir, "..data_tmp")))
	must(c.t, os.Rename(filepath.Join(c.dir, "..data_tmp"), filepath.Join(c.dir, "..data")))
	for name := range files {
		if c.version == 1 {
			must(c.t, os.Symlink(filepath.Join("..data", name), filepath.Join(c.dir, name)))
		}
	}
	if old != "" {
		must(c.t, os.RemoveAll(filepath.Join(c.dir, old)))
	}
}

func TestConfigMap(t *testing.T) {
	t.Parallel()
	styles(t, func(t *testing.T, notified bool) {
		c := configMap{t: t, dir: t.TempDir()}
		c.publish(map[string]string{"a.yaml": oldText, "b.yaml": oldText})
		w := start(t, notified, filepath.Join(c.dir, "a.yaml"), filepath.Join(c.dir, "b.yaml"))
		for i, text := range []string{newText, oldText, newText} {
			c.publish(map[string]string{"a.yaml": text, "b.yaml": text})
			w.until(text, 30*time.Second)
			if n := len(w.reports()); n != i+2 {
				t.Errorf("%d swaps made %d reports", i+1, n-1)
			}
		}
	})
}

func TestLinkChain(t *testing.T) {
	t.Parallel()
	styles(t, func(t *testing.T, notified bool) {
		dir := t.TempDir()
		for _, d := range []string{"x", "y", "z"} {
			must(t, os.Mkdir(filepath.Join(dir, d), 0o700))
		}
		write(t, filepath.Join(dir, "z", "real"), oldText)
		must(t, os.Symlink("../z", filepath.Join(dir, "y", "dir")))                                 // a directory on the way is a link
		must(t, os.Symlink(filepath.Join(dir, "y", "dir", "real"), filepath.Join(dir, "x", "abs"))) // absolute
		must(t, os.Symlink("abs", filepath.Join(dir, "x", "policy.yaml")))
		w := start(t, notified, filepath.Join(dir, "x", "policy.yaml"))
		// At the far end.
		write(t, filepath.Join(dir, "z", "real"), newText)
		w.until(newText, 30*time.Second)
		// In the middle: the directory link is swapped.
		must(t, os.Mkdir(filepath.Join(dir, "z2"), 0o700))
		write(t, filepath.Join(dir, "z2", "real"), oldText)
		must(t, os.Symlink("../z2", filepath.Join(dir, "y", "tmp")))
		must(t, os.Rename(filepath.Join(dir, "y", "tmp"), filepath.Join(dir, "y", "dir")))
		w.until(oldText, 30*time.Second)
		// And what is there now is watched.
		write(t, filepath.Join(dir, "z2", "real"), newText)
		w.until(newText, 30*time.Second)
	})
}

func TestDirectoryAppears(t *testing.T) {
	t.Parallel()
	styles(t, func(t *testing.T, notified bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a", "b", "policy.yaml")
		w := start(t, notified, path) // after a while the absence is reported
		if got := w.reports(); !slices.Equal(got, []string{"-"}) {
			t.Errorf("reports found %q", got)
		}
		must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
		pause(50 * time.Millisecond)
		must(t, os.Mkdir(filepath.Join(dir, "a", "b"), 0o700))
		pause(50 * time.Millisecond)
		write(t, path, newText)
		w.until(newText, 30*time.Second)
		must(t, os.RemoveAll(filepath.Join(dir, "a")))
		w.until("-", 30*time.Second)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		write(t, path, oldText)
		w.until(oldText, 30*time.Second)
	})
}

func TestTrail(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	write(t, filepath.Join(dir, "a", "b", "f"), "x")
	must(t, os.Symlink("b/../b/f", filepath.Join(dir, "a", "l")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	above := glances{}.trail(filepath.Join(dir, "none")).dirs // those above the test's own directory
	if len(above) == 0 || above[len(above)-1] != filepath.Dir(dir) {
		t.Errorf("above: %v", above)
	}
	for _, tt := range []struct {
		path string
		want []entry
		dirs []string
	}{
		{"a/b/f", []entry{{"a", "b"}, {"a/b", "f"}}, []string{"", "a"}},
		{"a/l", []entry{{"", "a"}, {"a", "l"}, {"a", "b"}, {"a/b", "f"}}, []string{""}},
		{"a/none", []entry{{"", "a"}, {"a", "none"}}, []string{""}},
		{"none/f", []entry{{"", "none"}}, []string{""}},
		{"a/b/f/under", []entry{{"a/b", "f"}, {"a/b/f", "under"}}, []string{"", "a", "a/b"}},
	} {
		got, want := glances{}.trail(filepath.Join(dir, tt.path)), way{dirs: slices.Clone(above)}
		for _, e := range tt.want {
			want.names = append(want.names, entry{filepath.Join(dir, e.dir), e.name})
		}
		for _, d := range tt.dirs {
			want.dirs = append(want.dirs, filepath.Join(dir, d))
		}
		if !slices.Equal(got.names, want.names) || !slices.Equal(got.dirs, want.dirs) {
			t.Errorf("%s: got %v, want %v", tt.path, got, want)
		}
	}
	got := glances{}.trail(filepath.Join(dir, "loop")).names
	if len(got) == 0 || len(got) > maxLinksInPath+2 {
		t.Errorf("a loop has %d entries", len(got))
	}
}

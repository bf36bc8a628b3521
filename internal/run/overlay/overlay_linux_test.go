package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a Store over a directory with files, and its upper directory.
func made(t *testing.T, files ...string) (s *Store, upper, lower string) {
	t.Helper()
	dir := t.TempDir()
	lower = filepath.Join(dir, "lower")
	must(t, os.Mkdir(lower, 0o755))
	for _, f := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(lower, f)), 0o755))
		must(t, os.WriteFile(filepath.Join(lower, f), []byte("old\n"), 0o644))
	}
	s, err := Make(filepath.Join(dir, "store"), lower, -1, -1)
	must(t, err)
	return s, filepath.Join(s.Dir, upperName), lower
}

func anything(string) string { return "" }

// A program leaves links and special files where its changes will be applied.
func TestApplyHostile(t *testing.T) {
	s, upper, lower := made(t, "dir/file", "later/file")
	outside := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(upper, "dir"), 0o755))
	must(t, os.WriteFile(filepath.Join(upper, "dir/file"), []byte("new\n"), 0o4755))
	must(t, os.Chmod(filepath.Join(upper, "dir/file"), 0o755|os.ModeSetuid))
	must(t, os.MkdirAll(filepath.Join(upper, "later"), 0o755))
	must(t, os.WriteFile(filepath.Join(upper, "later/file"), []byte("new\n"), 0o644))
	must(t, os.Symlink("../../../etc", filepath.Join(upper, "up")))
	must(t, os.Symlink("dir/../../x", filepath.Join(upper, "dir/odd")))
	must(t, os.Symlink("file", filepath.Join(upper, "dir/fine")))
	must(t, os.WriteFile(filepath.Join(upper, "unreadable"), []byte("x"), 0o000))
	// Somebody puts a link in the place of a directory after the list was made.
	gate := func(path string) string {
		if path == filepath.Join(lower, "later") {
			if err := os.Rename(path, path+".old"); err != nil {
				return err.Error()
			}
			if err := os.Symlink(outside, path); err != nil {
				return err.Error()
			}
		}
		return ""
	}
	must(t, os.Chmod(filepath.Join(upper, "later"), 0o700)) // a change, so that the gate is asked
	res, err := s.Apply(gate, false)
	must(t, err)
	var refused []string
	for _, r := range res.Refused {
		refused = append(refused, r.Path)
	}
	slices.Sort(refused)
	if got := strings.Join(refused, " "); got != "/dir/odd /later /later/file /up" {
		t.Errorf("refused: %+v", res.Refused)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("outside there is %v, %v", names, err)
	}
	fi, err := os.Stat(filepath.Join(lower, "dir/file"))
	if err != nil || fi.Mode() != 0o755 {
		t.Errorf("the file has mode %v, %v", fi.Mode(), err)
	}
	if data, err := os.ReadFile(filepath.Join(lower, "dir/fine")); string(data) != "new\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// A tree without end costs a bounded walk.
func TestDeep(t *testing.T) {
	s, upper, _ := made(t)
	must(t, os.MkdirAll(filepath.Join(upper, strings.Repeat("d/", maxDepth+1)), 0o755))
	if _, _, err := s.Changes(10); err == nil || !strings.Contains(err.Error(), "below each other") {
		t.Error(err)
	}
}

func TestChanges(t *testing.T) {
	s, upper, _ := made(t, "same", "edited", "mode", "was/dir", "big")
	for name, text := range map[string]string{"same": "old\n", "edited": "new\n", "mode": "old\n", "added": "", "was": ""} {
		must(t, os.WriteFile(filepath.Join(upper, name), []byte(text), 0o644))
	}
	must(t, os.Chmod(filepath.Join(upper, "mode"), 0o755))
	must(t, os.MkdirAll(filepath.Join(upper, "closed/inner"), 0o755))
	must(t, os.Chmod(filepath.Join(upper, "closed"), 0))
	all, total, err := s.Changes(5)
	must(t, err)
	got := ""
	for _, c := range all {
		got += fmt.Sprintf("%c %s ", c.Kind, c.Path)
	}
	if got != "A /added A /closed A /closed/inner M /edited M /mode " || total != 6 {
		t.Errorf("%d: %s", total, got)
	}
	must(t, s.Keep())
	again, err := Open(s.Dir)
	must(t, err)
	res, err := again.Apply(anything, true)
	must(t, err)
	if len(res.Applied) != 6 || len(res.Refused) != 0 {
		t.Errorf("%+v", res)
	}
	must(t, again.Remove())
	if _, err := os.Lstat(s.Dir); err == nil {
		t.Error("something is left")
	}
}

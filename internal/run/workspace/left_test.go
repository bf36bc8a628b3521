//go:build system && unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A run that leaves what cannot be read costs itself that, and nothing else.
func TestUnreadable(t *testing.T) {
	p := little(t, map[string]string{"shut/a": "a\n", "b": "b\n"})
	_, out := round(t, p, nil, func(work place) {
		work.write("README", "by the run\n")
		if err := syscall.Mkfifo(work.path("fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{"b": 0, "shut": 0} {
			if err := os.Chmod(work.path(name), mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(work.path(name), 0o700) })
		}
	})
	want := []Problem{{"b", "it cannot be read: chmod u+rX"}, {"fifo", "it is no file and no link"}, {"shut", "it cannot be read: chmod u+rX"}}
	if os.Geteuid() == 0 {
		want = want[1:2] // root reads everything
	}
	if len(out.Refused) != len(want) {
		t.Fatalf("refused: %+v", out.Refused)
	}
	for _, w := range want {
		found := false
		for _, r := range out.Refused {
			found = found || r == w
		}
		if !found {
			t.Errorf("%+v is not refused: %+v", w, out.Refused)
		}
	}
	if strings.Contains(string(out.Diff), "deleted file") || len(out.Changed) != 1 {
		t.Errorf("what cannot be read is gone: %+v", out.Changed)
	}
}

func TestTooDeep(t *testing.T) {
	p := little(t, nil)
	deep := strings.TrimSuffix(strings.Repeat("d/", maxDepth+3), "/")
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Capture(t.Context(), Source{Dir: p.dir}, filepath.Join(t.TempDir(), "in")); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("%v", err)
	}
	in := filepath.Join(p.dir, "in")
	if _, err := Capture(t.Context(), Source{Dir: p.dir}, in); err == nil || !strings.Contains(err.Error(), "name a directory elsewhere") {
		t.Errorf("%v", err)
	}
}

// Repositories with SHA-256, and work trees beside the main one.
func TestOtherRepositories(t *testing.T) {
	p := place{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main", "--object-format=sha256")
	if _, err := Capture(t.Context(), Source{Dir: p.dir}, filepath.Join(t.TempDir(), "in")); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("%v", err)
	}
	p.write("README", "hello\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "one")
	p.git("pack-refs", "--all")
	beside := place{t, filepath.Join(t.TempDir(), "beside")}
	p.git("worktree", "add", "-q", "-b", "other", beside.dir)
	beside.write("staged", "x\n")
	beside.git("add", "staged")
	_, out := round(t, beside, nil, func(work place) { work.write("new", work.read("staged")) })
	landed, err := Pull(t.Context(), Target{Dir: beside.dir}, out)
	if err != nil || landed.Branch == "" || p.git("show", landed.Branch+":new") != "x" {
		t.Errorf("%+v %v", landed, err)
	}
	if landed, err := Pull(t.Context(), Target{Dir: p.dir}, out); err != nil || landed.Branch != "" || p.read("new") != "x\n" {
		t.Errorf("%+v %v", landed, err)
	}
}

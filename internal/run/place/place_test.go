package place

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"egressd/policy/files"
)

func TestFind(t *testing.T) {
	dir := Resolve(t.TempDir())
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(d, d+"-link"); err != nil {
			t.Fatal(err)
		}
	}
	at, err := Find(Run{
		Dir: work + "-link", Env: []string{"HOME=/nowhere", "HOME=" + home + "-link/", "GOCACHE=" + dir + "/cache", "CARGO_HOME=" + home},
		Argv: []string{"sh", "-c", "cd x && claude -p y"}, StateHome: dir + "/state",
	})
	if err != nil || at.Workspace != work || at.Home != home {
		t.Fatalf("%+v, %v", at, err)
	}
	for _, want := range []string{"~/.claude", dir + "/cache", home + "/registry"} {
		if !slices.Contains(at.State, want) {
			t.Errorf("%q lacks %s", at.State, want)
		}
	}
	g, err := (files.Section{Write: []files.Rule{{Path: work + "-link/out", At: "--write #1"}, {Path: dir + "/home-link/x", At: "--write #2"}}}).In(at)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]files.Access{
		work + "/out/x": files.ReadWrite, home + "/x": files.ReadWrite, home + "/y": files.ReadOnly,
		dir + "/state/egressd/sandboxes": files.Hidden, home + "/.claude/.credentials.json": files.ReadWrite,
		home + "/.codex/auth.json": files.Hidden,
	} {
		if d := g.Decide(name); d.Access != want {
			t.Errorf("%s is %s, want %s", name, d.Access, want)
		}
	}
}

func TestResolve(t *testing.T) {
	dir := Resolve(t.TempDir())
	if err := os.Symlink("elsewhere", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/elsewhere", 0o700); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		dir + "/link/a/b":       dir + "/elsewhere/a/b",
		dir + "/none/a":         dir + "/none/a",
		dir + "/elsewhere/../x": dir + "/x",
		"/":                     "/",
	} {
		if got := Resolve(in); got != want {
			t.Errorf("%s leads to %s, want %s", in, got, want)
		}
	}
}

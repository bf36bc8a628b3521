//go:build linux

package hermetic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

// A repository that the workspace keeps under another name is read-only, whether
// .git is a link to it or a file that names it.
func TestRepositoryElsewhere(t *testing.T) {
	for name, tt := range map[string]struct{ link, file string }{
		"link":             {link: "meta"},
		"link twice":       {link: "via"},
		"file":             {file: "gitdir: meta\n"},
		"file, with links": {file: "gitdir: ./via/../via"},
		"absolute":         {file: "gitdir: /WORKSPACE/meta\n"},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "meta/hooks"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("meta", filepath.Join(dir, "via")); err != nil {
			t.Fatal(err)
		}
		if tt.link != "" {
			err = os.Symlink(tt.link, filepath.Join(dir, ".git"))
		} else {
			err = os.WriteFile(filepath.Join(dir, ".git"), []byte(strings.Replace(tt.file, "/WORKSPACE", dir, 1)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		o := run(t, &Backend{}, sandbox.Spec{Dir: dir, Script: "echo evil >meta/hooks/pre-commit; echo evil >.git/config; mv meta x; ln -s x meta; rm -rf meta via; echo free >free"})
		if _, err := os.Stat(filepath.Join(dir, "free")); err != nil || o.failure != nil {
			t.Fatalf("%s: %v: %+v", name, err, o)
		}
		for _, made := range []string{"meta/hooks/pre-commit", "meta/config", "x"} {
			if _, err := os.Lstat(filepath.Join(dir, made)); err == nil {
				t.Errorf("%s: %s was made", name, made)
			}
		}
		if i, err := os.Lstat(filepath.Join(dir, "meta/hooks")); err != nil || !i.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A .git that is nothing of the sort holds nothing up.
func TestRepositoryOfNonsense(t *testing.T) {
	for _, make := range []func(name string) error{
		func(name string) error { return os.Symlink(".git", name) },
		func(name string) error { return os.WriteFile(name, []byte("gitdir: .\n"), 0o644) },
		func(name string) error { return os.WriteFile(name, []byte("gitdir: ../../../../../etc\n"), 0o644) },
		func(name string) error { return unix.Mkfifo(name, 0o644) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if o := run(t, &Backend{}, sandbox.Spec{Dir: dir, Script: "echo x >f; cat f"}); o.out != "x\n" || o.failure != nil {
			t.Errorf("%+v", o)
		}
	}
}

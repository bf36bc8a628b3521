//go:build system

package workspace

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// place is a directory with helpers for what is in it.
type place struct {
	t   *testing.T
	dir string
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func (p place) link(to, name string) {
	p.t.Helper()
	if err := os.Symlink(to, p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// git runs git as a person does.
func (p place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", args...)
	cmd.Dir = p.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// files is what is in a work tree: content, links and who may execute.
func (p place) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(p.dir, name)
		info, err := d.Info()
		switch {
		case err != nil || d.IsDir():
		case info.Mode()&os.ModeSymlink != 0:
			all[rel], err = os.Readlink(name)
			all[rel] = "-> " + all[rel]
		default:
			all[rel] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, p.read(rel))
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%q is %.60q, want %.60q", name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%q is there, too", name)
		}
	}
}

func binary(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return string(b)
}

// large is a repository of 500 files: binaries, links, modes, odd names, line ends.
func large(t *testing.T) place {
	p := place{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main")
	for i := range 480 {
		switch i % 4 {
		case 0:
			p.write(fmt.Sprintf("bin/%d.dat", i), binary(2000))
		case 1:
			p.write(fmt.Sprintf("text/%d/crlf.txt", i), fmt.Sprintf("a\r\nb %d\r\n", i))
		default:
			p.write(fmt.Sprintf("src/%d.go", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 20))
		}
	}
	for i, name := range []string{"ü ö.txt", "a\"b", "tab\there", "line\nend", "b\\c", "-rf", "\xff\xfe", " space "} {
		p.write(name, fmt.Sprintf("odd %d\n", i))
	}
	p.write("run.sh", "#!/bin/sh\n")
	if err := os.Chmod(p.path("run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p.link(fmt.Sprintf("src/%d.go", i*4+2), fmt.Sprintf("link%d", i))
	}
	p.link("/etc/passwd", "outside")
	p.link("nowhere", "dangling")
	p.write(".gitattributes", "*.txt text eol=lf\n*.go filter=evil diff=evil\n")
	p.write(".gitignore", "ignored/\n*.tmp\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "one")
	return p
}

// evil puts every way that we know of to start a program into a repository's directory.
// The mark is a file that the program would make.
func evil(t *testing.T, p place) (mark string) {
	mark = filepath.Join(t.TempDir(), "mark")
	program := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(p.dir, ".git", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{
		"post-checkout", "pre-commit", "post-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman",
		"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-auto-gc", "post-merge", "prepare-commit-msg",
	} {
		b, err := os.ReadFile(program)
		if err == nil {
			err = os.WriteFile(filepath.Join(hooks, h), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.write(".git/included", "[diff]\n\texternal = "+program+"\n")
	config, err := os.ReadFile(p.path(".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	p.write(".git/config", string(config)+fmt.Sprintf(`
[core]
	fsmonitor = %[1]s
	pager = %[1]s
	editor = %[1]s
	sshCommand = %[1]s
	hooksPath = %[2]s
[include]
	path = included
[filter "evil"]
	clean = %[1]s
	smudge = %[1]s
	process = %[1]s
	required = true
[diff "evil"]
	command = %[1]s
	textconv = %[1]s
[gpg]
	program = %[1]s
[commit]
	gpgsign = true
`, program, hooks))
	p.write(".git/info/attributes", "* filter=evil diff=evil\n")
	return mark
}

// writeRaw makes a work tree that of HEAD, byte for byte.
func writeRaw(t *testing.T, p place) {
	t.Helper()
	c, err := open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := c.repo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	all, err := r.list(t.Context(), c.head)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name := range all {
		if err := root.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.checkout(t.Context(), root, all, sortedNames(all)); err != nil {
		t.Fatal(err)
	}
}

func openHead(t *testing.T, p place) string {
	t.Helper()
	c, err := open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.head
}

// small is a repository of a few files.
func little(t *testing.T, files map[string]string) place {
	p := place{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main")
	p.write("README", "hello\n")
	for name, text := range files {
		p.write(name, text)
	}
	p.git("add", "-A", "-f")
	p.git("commit", "-q", "-m", "one")
	return p
}

// changes is what a run does: it changes the work tree in every way, and leaves a
// hostile repository. want is what should come back.
func changes(t *testing.T, work place, mark string) (inside string, want map[string]string) {
	work.write("made/by/run.bin", "\x00\xff"+binary(5000))
	work.write("src/6.go", "changed by the run\n")
	if err := os.Rename(work.path("bin/4.dat"), work.path("bin/renamed.dat")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(work.path("link0")); err != nil {
		t.Fatal(err)
	}
	work.write("link0/now/a/directory", "x\n")
	if err := os.Chmod(work.path("src/7.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	work.link("../../../../etc/shadow", "made/link")
	work.write("x.tmp", "ignored\n")
	work.write("nested/.git/config", "[core]\n\tfsmonitor = touch "+mark+"\n")
	work.write("nested/file", "in a repository of its own\n")
	inside = evil(t, work)
	work.write(".git/objects/info/alternates", "/nonexistent\n")
	work.write(".git/index", "no index")
	want = work.files()
	delete(want, "x.tmp")
	return inside, want
}

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"egressd/policy/files"
	"egressd/sandbox"
)

// person is a home directory with a repository in it.
type person struct{ home, work string }

// newPerson makes one below parent.
func newPerson(t *testing.T, parent string) person {
	t.Helper()
	home := tempDir(t, parent)
	p := person{home: home, work: filepath.Join(home, "src/app")}
	for path, text := range map[string]string{
		".ssh/id_ed25519": "key", ".ssh/config": "Host *", ".aws/credentials": "key", ".bashrc": "#", ".config/systemd/user/a.service": "#",
		".local/bin/tool": "#", ".local/state/egressd/sandboxes/x": "{}", "notes": "n", ".cache/x": "x", "dotfiles/zshrc": "#",
		"src/app/main.go": "package main", "src/app/.git/HEAD": "ref: refs/heads/main", "src/app/.git/config": "[core]\n",
		"src/app/.git/hooks/pre-push.sample": "#", "src/app/.git/modules/lib/config": "[core]\n",
		"src/app/.git/modules/lib/HEAD": "ref: refs/heads/main", "src/app/.git/modules/lib/objects/x": "x",
		"src/app/.git/modules/libs/deep/config": "[core]\n", "src/app/.git/modules/libs/deep/HEAD": "ref: refs/heads/main",
		"src/app/.git/modules/libs/deep/objects/x": "x", "src/app/.git/modules/libs/deep/hooks/x.sample": "#", "src/app/.git/modules/libs/deep/info/attributes": "#",
		"src/app/.git/modules/lib/modules/in/config": "[core]\n", "src/app/.git/modules/lib/modules/in/HEAD": "ref: refs/heads/main",
		"src/app/.git/modules/lib/modules/in/objects/x": "x",
		"src/app/.git/objects/x":                        "x", "src/app/.git/refs/x": "x",
		"src/app/.vscode/tasks.json": "{}", "src/app/shared/mcp.json": "{}", "src/app/a/b/.envrc": "#", "src/app/a/nested/.git/config": "[core]\n",
	} {
		p.write(t, path, text)
	}
	for link, target := range map[string]string{".zshrc": "dotfiles/zshrc", "src/app/.mcp.json": "shared/mcp.json", "src/app/.idea": "shared"} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p person) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(p.home, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (p person) spec() sandbox.Spec {
	return sandbox.Spec{Dir: p.work, Env: []string{"HOME=" + p.home, "PATH=/usr/bin:/bin"}}
}

// fileAttacks are what a program may not do to a person's files by default. Paths
// begin at HOME.
var fileAttacks = []struct{ name, attack, path, second string }{
	{"read a key", "content", ".ssh/id_ed25519", ""},
	{"read cloud credentials", "content", ".aws/credentials", ""},
	{"read launch's records", "content", ".local/state/egressd/sandboxes/x", ""},
	{"write a file in HOME", "overwrite", "notes", ""},
	{"make a file in HOME", "create", "new", ""},
	{"write beside the working directory", "create", "src/other/x", ""},
	{"shell start-up file", "overwrite", ".bashrc", ""},
	{"shell start-up file that is not there", "create", ".bash_login", ""},
	{"shell start-up file behind a link", "overwrite", "dotfiles/zshrc", ""},
	{"systemd unit", "create", ".config/systemd/user/x.service", ""},
	{"program in PATH", "create", ".local/bin/launch", ""},
	{"authorized_keys", "create", ".ssh/authorized_keys", ""},
	{"git hook", "create", "src/app/.git/hooks/pre-commit", ""},
	{"git configuration", "overwrite", "src/app/.git/config", ""},
	{"git configuration replaced", "replace", "src/app/.git/config", ""},
	{"git configuration removed", "remove", "src/app/.git/config", ""},
	{"git directory moved away", "new-directory", "src/app/.git", ""},
	{"configuration of a submodule", "overwrite", "src/app/.git/modules/lib/config", ""},
	{"configuration of a submodule in a directory", "overwrite", "src/app/.git/modules/libs/deep/config", ""},
	{"hook of a submodule in a directory", "create", "src/app/.git/modules/libs/deep/hooks/post-checkout", ""},
	{"attributes of a submodule in a directory", "overwrite", "src/app/.git/modules/libs/deep/info/attributes", ""},
	{"submodule in a directory moved away", "new-directory", "src/app/.git/modules/libs", ""},
	{"configuration of a submodule's submodule", "overwrite", "src/app/.git/modules/lib/modules/in/config", ""},
	{"modules moved away", "new-directory", "src/app/.git/modules", ""},
	{"nested repository", "overwrite", "src/app/a/nested/.git/config", ""},
	{"directory above it moved away", "new-directory", "src/app/a", ""},
	{"editor's tasks", "overwrite", "src/app/.vscode/tasks.json", ""},
	{"editor's tasks, another file", "create", "src/app/.vscode/launch.json", ""},
	{"envrc in a part", "overwrite", "src/app/a/b/.envrc", ""},
	{"another name for it", "hard-link", "src/app/a/b/.envrc", "src/app/second"},
	{"a link to it", "overwrite", "src/app/.mcp.json", ""},
	{"what a link leads to", "overwrite", "src/app/shared/mcp.json", ""},
	{"the link itself", "relink", "src/app/.mcp.json", ""},
	{"a link to a directory", "relink", "src/app/.idea", ""},
}

func TestFileAttacks(t *testing.T) {
	for _, tt := range fileAttacks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, "/var/tmp")
			args := []string{filepath.Join(p.home, tt.path)}
			if tt.second != "" {
				args = append(args, filepath.Join(p.home, tt.second))
			}
			if ok, out := attack(t, &Backend{}, p.spec(), tt.attack, args...); ok {
				t.Errorf("it worked: %s", out)
			}
			p = newPerson(t, "/var/tmp")
			for i, path := range []string{tt.path, tt.second}[:len(args)] {
				args[i] = filepath.Join(p.home, path)
			}
			if ok, out := attack(t, without("read-only", "files"), p.spec(), tt.attack, args...); !ok {
				t.Errorf("without the layers it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
}

// TestSystemFiles attacks what root owns. Without the layer it is not tried: this
// machine would keep what it writes.
func TestSystemFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user may not write these in any case")
	}
	for _, path := range []string{
		"/etc/ld.so.preload", "/etc/cron.d/process-test", "/etc/profile.d/process-test.sh", "/usr/local/bin/process-test", "/root/.ssh/process-test",
		"/usr/lib/process-test", "/etc/systemd/system/process-test.service", "/boot/process-test", "/var/spool/process-test", "/process-test",
	} {
		if ok, out := attack(t, &Backend{}, sandbox.Spec{Dir: "/", Env: []string{"HOME=/root", "PATH=/usr/bin:/bin"}}, "create", path); ok {
			os.Remove(path)
			t.Errorf("%s: it worked: %s", path, out)
		}
	}
	dir := outsideDir(t)
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "create", dir+"/x"); ok {
		t.Errorf("it worked: %s", out)
	}
	if ok, out := attack(t, without("read-only"), sandbox.Spec{}, "create", dir+"/x"); !ok {
		t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "content", "/etc/shadow"); ok {
		t.Errorf("it worked: %s", out)
	}
	if ok, out := attack(t, without("files"), sandbox.Spec{}, "content", "/etc/shadow"); !ok {
		t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
	}
}

// What is hidden looks empty, so that programs take it for no configuration.
func TestHiddenLooksEmpty(t *testing.T) {
	p := newPerson(t, "/var/tmp")
	p.write(t, ".npmrc", "//registry/:_authToken=x")
	spec := p.spec()
	spec.Argv = []string{"/bin/sh", "-c", `cd; ls -A .ssh .aws; cat .npmrc .ssh/config; echo; touch .ssh/x 2>/dev/null || echo no`}
	res := run(t, &Backend{}, spec)
	if want := ".aws:\n\n.ssh:\nconfig\nHost *\nno\n"; res.out != want || res.err != nil {
		t.Errorf("got %q, %v; want %q", res.out, res.err, want)
	}
}

// What is missing in a submodule's directory and would be obeyed is moved away; a
// branch that is called like a file that git obeys stays.
func TestLatecomersInSubmodules(t *testing.T) {
	p := newPerson(t, "/var/tmp")
	spec := p.spec()
	spec.Argv = []string{"/bin/sh", "-ec", `cd .git/modules; for m in lib libs/deep lib/modules/in; do
mkdir -p $m/info $m/refs/heads; for f in info/attributes config.worktree commondir refs/heads/config refs/heads/hooks; do test -e $m/$f || echo x >$m/$f; done; done`}
	if res := run(t, &Backend{}, spec); res.err != nil || res.ExitCode != 0 {
		t.Fatal(res.err, res.out)
	}
	for _, m := range []string{"lib", "libs/deep", "lib/modules/in"} {
		dir := filepath.Join(p.work, ".git/modules", m)
		for _, name := range []string{"info/attributes", "config.worktree", "commondir"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil && string(data) == "x\n" {
				t.Errorf("%s/%s stands", m, name)
			}
		}
		for _, name := range []string{"refs/heads/config", "refs/heads/hooks"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}

// What everybody does in a working directory goes on to work.
func TestWorkGoesOn(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	p := newPerson(t, "/var/tmp")
	work := filepath.Join(p.home, "src/real")
	for _, argv := range [][]string{{"init", "-q", work}, {"-C", work, "config", "user.name", "x"}, {"-C", work, "config", "user.email", "x@example.com"}} {
		if out, err := exec.CommandContext(t.Context(), git, argv...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", argv, err, out)
		}
	}
	spec := p.spec()
	spec.Dir = work
	spec.Argv = []string{"/bin/sh", "-ec", `echo a >a; mkdir -p d; echo b >d/b; git add -A; git commit -qm one; git mv a c; git commit -qm two; git checkout -qb other
git reset -q --hard HEAD~1; git stash -q 2>/dev/null || true; git gc -q; git log --format=%s; git clone -q . clone; cat clone/a; echo x >~/.cache/made; echo x >/tmp/x; rm -r clone; git status --short`}
	res := run(t, &Backend{}, spec)
	if want := "one\na\n"; res.out != want || res.ExitCode != 0 {
		t.Errorf("got %q, exit %d, %v; want %q", res.out, res.ExitCode, res.err, want)
	}
	if _, err := os.Stat(filepath.Join(p.home, ".cache/made")); err != nil {
		t.Error(err)
	}
}

// A linked worktree's repository is elsewhere, and git writes it.
func TestLinkedWorktree(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	home := tempDir(t, "/var/tmp")
	main, linked := filepath.Join(home, "main"), filepath.Join(home, "linked")
	user := []string{"-c", "user.name=x", "-c", "user.email=x@example.com"}
	for _, argv := range [][]string{{"init", "-q", main}, {"-C", main, "commit", "-q", "--allow-empty", "-m", "one"}, {"-C", main, "worktree", "add", "-q", linked}} {
		if out, err := exec.CommandContext(t.Context(), git, append(user[:4:4], argv...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", argv, err, out)
		}
	}
	spec := sandbox.Spec{Dir: linked, Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
	spec.Argv = []string{"/bin/sh", "-c", `echo a >a; git add a; git -c user.name=x -c user.email=x@example.com commit -qm two && git log --format=%s`}
	if res := run(t, &Backend{}, spec); res.out != "two\none\n" {
		t.Errorf("got %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	for _, path := range []string{main + "/.git/hooks/pre-commit", main + "/.git/config", linked + "/.git", main + "/x"} {
		if ok, out := attack(t, &Backend{}, spec, "create", path); ok {
			t.Errorf("%s: it worked: %s", path, out)
		}
	}
	// A .git file that the program made names a directory that does not name it.
	fake := filepath.Join(home, "fake")
	if err := os.Mkdir(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fake+"/.git", []byte("gitdir: "+main+"/.git\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec.Dir = fake
	if ok, out := attack(t, &Backend{}, spec, "create", main+"/.git/x"); ok {
		t.Errorf("a .git file opens what it names: %s", out)
	}
}

// A repository without a work tree takes commits, and its hooks and configuration
// are the person's, whatever it is called.
func TestBareRepository(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	work := tempDir(t, "/var/tmp")
	hub := filepath.Join(work, "shared", "hub")
	for _, argv := range [][]string{{"init", "-q", "--bare", hub}, {"-C", hub, "config", "core.pager", "less"}, {"init", "-q", work + "/r"}} {
		if out, err := exec.CommandContext(t.Context(), git, argv...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", argv, err, out)
		}
	}
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=/nonexistent", "PATH=/usr/bin:/bin"}}
	spec.Argv = []string{"/bin/sh", "-c", `cd r; git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m one && git push -q ../shared/hub HEAD:refs/heads/x &&
git -C ../shared/hub symbolic-ref HEAD refs/heads/x && git -C ../shared/hub log --format=%s`}
	if res := run(t, &Backend{}, spec); res.out != "one\n" {
		t.Errorf("got %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	for _, path := range []string{hub + "/hooks/post-update", hub + "/config"} {
		if ok, out := attack(t, &Backend{}, spec, "create", path); ok {
			t.Errorf("%s: it worked: %s", path, out)
		}
	}
	spec.Dir = hub // where git looks at the directory itself
	if ok, out := attack(t, &Backend{}, spec, "create", hub+"/config"); ok {
		t.Errorf("config of the working directory: it worked: %s", out)
	}
}

// Rules that a person wrote hold, in private roots as well.
func TestFileRules(t *testing.T) {
	p := newPerson(t, "/var/tmp")
	other := tempDir(t, "/var/tmp")
	section := files.Section{
		Write: []files.Rule{{Path: other}, {Path: "~/.ssh/known"}, {Path: ".git/hooks"}},
		Read:  []files.Rule{{Path: "~/.aws"}},
		Hide:  []files.Rule{{Path: "main.go"}, {Path: "**/b"}},
	}
	p.write(t, ".ssh/known", "")
	for _, tt := range []struct {
		home               files.Home
		name, attack, path string
		want               bool
	}{
		{files.HomeUnset, "write in a private root", "create", other + "/x", true},
		{files.HomeUnset, "write in what is hidden", "overwrite", p.home + "/.ssh/known", true},
		{files.HomeUnset, "write what runs later", "create", p.work + "/.git/hooks/x", true},
		{files.HomeUnset, "read a secret", "content", p.home + "/.aws/credentials", true},
		{files.HomeUnset, "write it", "overwrite", p.home + "/.aws/credentials", false},
		{files.HomeUnset, "hidden in the working directory", "content", p.work + "/main.go", false},
		{files.HomeUnset, "hidden by a pattern", "content", p.work + "/a/b/.envrc", false},
		{files.HomeReadWrite, "home rw", "create", p.home + "/new", true},
		{files.HomeReadWrite, "home rw, key", "content", p.home + "/.ssh/id_ed25519", false},
		{files.HomeReadWrite, "home rw, shell start", "overwrite", p.home + "/.bashrc", false},
		{files.HomeReadWrite, "home rw, behind a link", "overwrite", p.home + "/dotfiles/zshrc", false},
		{files.HomeReadWrite, "home rw, directory above", "new-directory", p.home + "/.config", false},
		{files.HomePrivate, "home private", "content", p.home + "/notes", false},
		{files.HomePrivate, "home private, its own", "create", p.home + "/new", true},
		{files.HomePrivate, "home private, workspace", "create", p.work + "/new", true},
		{files.HomePrivate, "home private, hook", "overwrite", p.work + "/.git/config", false},
		{files.HomePrivate, "home private, named", "content", p.home + "/.aws/credentials", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := section
			s.Home = tt.home
			spec := p.spec()
			var err error
			if spec.Files, err = s.In(FilesPlace(nil, spec.Env, spec.Dir)); err != nil {
				t.Fatal(err)
			}
			if ok, out := attack(t, &Backend{}, spec, tt.attack, tt.path); ok != tt.want {
				t.Errorf("worked: %v, want %v: %s", ok, tt.want, out)
			}
		})
	}
	if _, err := os.Stat(p.home + "/new"); err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// nestedFileAttack tries, with every capability in namespaces of its own, to take
// the mounts off. Each line that it prints is a way in.
const nestedFileAttack = `
cd /; umount -l "$1/.git/config"; umount -l "$1/.git/hooks"; umount -l "$1/.git"; umount -l "$HOME/.ssh"
mount -o remount,bind,rw "$1/.git/config"; mount -o remount,bind,rw /; mkdir -p /tmp/view; mount --bind "$1" /tmp/view; mount --bind "$HOME" /tmp/view
mount --move "$1/.git/config" /tmp/view
exec 2>/dev/null
(echo x >>"$1/.git/config") && echo "writes the configuration"
touch "$1/.git/hooks/x" && echo "makes a hook"
mv "$1/.git" "$1/git" && echo "moves the repository"
test -s "$HOME/.ssh/id_ed25519" && echo "sees a key"
test -s /tmp/view/.ssh/id_ed25519 && echo "sees a key below a bind"
touch "$HOME/x" && echo "writes in HOME"
echo done
`

// TestFilesNested holds every place in namespaces that a program makes.
func TestFilesNested(t *testing.T) {
	needNamespaces(t)
	if os.Geteuid() == 0 {
		t.Skip("the kernel lets uid 0 map itself only with CAP_SETFCAP; the run as an ordinary user tries this")
	}
	p := newPerson(t, "/var/tmp")
	spec := p.spec()
	spec.Argv = []string{"/bin/sh", "-c", `unshare -Urmp --fork sh -c "$1" x "$2" 2>/dev/null; true`, "x", nestedFileAttack, p.work}
	if got := run(t, &Backend{Nested: true}, spec); strings.TrimSpace(got.out) != "done" {
		t.Errorf("nested: %q, %v, want done alone", got.out, got.err)
	}
	b := without("files", "read-only")
	b.Nested = true
	if got := run(t, b, spec); strings.Count(got.out, "\n") != 7 {
		t.Errorf("without the layers, this test shows nothing: %q", got.out)
	}
}

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

// No command makes, changes or moves anything that is called .git.
func TestGitAttacks(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{".git/hooks", "sub/.git/hooks", "worktree", "meta/hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, ".git/config"), "[core]\n")
	put(t, filepath.Join(dir, "sub/.git/config"), "[core]\n")
	put(t, filepath.Join(dir, "worktree/.git"), "gitdir: /elsewhere\n")
	put(t, filepath.Join(dir, "p"), "evil\n")
	for name, target := range map[string]string{"g": ".git", "c": ".git/config"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, ".git/config"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	was := gits(t, dir)
	var script strings.Builder
	for line := range strings.Lines(gitAttacks) {
		script.WriteString("( " + strings.TrimSuffix(line, "\n") + "\n) >/dev/null 2>&1 </dev/null\ncd /\n[ -f p ] || echo evil >p\n")
	}
	o := run(t, &Backend{}, sandbox.Spec{Dir: dir, Script: script.String() + "echo the end"})
	if o.failure != nil || o.out != "the end\n" {
		t.Fatalf("%+v", o)
	}
	if is := gits(t, dir); is != was {
		t.Errorf("is\n%s\nwas\n%s", is, was)
	}
}

// gits is what lies in everything that is called .git below dir.
func gits(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.EqualFold(strings.Trim(filepath.Base(path), "\u200c\u200d"), ".git") {
			b.WriteString(look(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const gitAttacks = `echo x >.git/config
echo x >>.git/config
echo x >|.git/hooks/new
exec 3<>.git/config; echo x >&3
mkdir .GIT; echo x >.gIt/config
mkdir -p d/.git/hooks
echo x >g/config; echo x >c; echo x >hard
echo x >./sub/../.git/./config
cd .git/hooks && echo x >../config
mv .git g2; mv sub/.git s2; mv worktree/.git w2
mv p .git/p; mv -T p .git/config; mv -f meta .git; mv hard .git/config
cp p .git/config; cp -f --remove-destination p .git/config; cp -rT meta .git; cp -r meta/. .git/
mkdir -p /tmp/t/.git/hooks; echo x >/tmp/t/.git/config; cp -r /tmp/t/. .; mv /tmp/t new
tar cf t.tar -C /tmp/t .git; tar xf t.tar; mkdir q; tar xf t.tar -C q
tar cf t.tar --transform 's,p,.git/hooks/evil,' p; tar xPf t.tar
tar cf t.tar --transform 's,p,g/config,' p; tar xf t.tar; tar xf t.tar --overwrite
printf -- '--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n-[core]\n+evil\n' | patch -p1
printf -- '--- /dev/null\n+++ b/.git/hooks/evil\n@@ -0,0 +1 @@\n+evil\n' | patch -p1
printf 'diff --git a/p b/.git/p\nrename from p\nrename to .git/p\n' | patch -p1
sed -i s/core/evil/ .git/config c; sed -i.bak --follow-symlinks s/core/evil/ c; sed -n 'w .git/config' p
tee -a .git/config .git/hooks/x <p; split -b 1 p .git/x
sort -o .git/config p; uniq p .git/config; shuf -o .git/config p; dd if=p of=.git/config
truncate -s 0 .git/config; touch -d @1 .git/config; touch .git/new; chmod -R 777 .git
rm -rf .git sub; rmdir .git/hooks; find . -name config -delete; find .git -delete
ln -sf ../p .git/config; ln -f p .git/config; ln -sfn meta .git; ln -sT meta .git
ln .git/config h2 && echo x >h2; ln -L c h3 && echo x >h3
mktemp -p .git; install p .git/config; install -d .git/foo
awk 'BEGIN{print "x" >".git/config"; print "x" | "cat >.git/config"}'
gzip -k .git/config; yq -i .a=1 .git/config; xxd p .git/config; find . -fprint .git/config
mkdir $'.g\u200cit' $'.git\u200d'; ln -s p .GiT; touch a; mv a .GIT
mv sub sub9; echo x >sub9/.git/config; mv sub9 sub
(cd .git; (echo x >config) & wait); coproc echo x >.git/config; cat <(echo a >.git/config); echo x | tee >(cat >.git/config)
rename p .git p; mv p .git; history -w .git/config
`

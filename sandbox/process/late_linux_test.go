package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"egressd/event/eventtest"
	"egressd/policy/files"
	"egressd/sandbox"
)

// lateAttacks make what a person's editor, shell or git obeys and that was not
// there at the start. The script runs in the working directory; what it leaves
// below planted is obeyed; of several names, only all of them together.
var lateAttacks = []struct{ name, script, planted string }{
	{"envrc", "echo x >.envrc", ".envrc"},
	{"project policy", "echo x >.egress.yaml", ".egress.yaml"},
	{"envrc moved in", "echo x >other; mv other .envrc", ".envrc"},
	{"envrc as a link", "echo x >other; ln -s other .envrc", ".envrc"},
	{"tools of an agent", "echo {} >.mcp.json", ".mcp.json"},
	{"editor's tasks", "mkdir .vscode && echo {} >.vscode/tasks.json", ".vscode/tasks.json"},
	{"editor's tasks, in a directory that was empty", "mkdir .vscode && sleep 0.1 && echo {} >.vscode/tasks.json", ".vscode/tasks.json"},
	{"editor's tasks, moved in", "mkdir other && echo {} >other/tasks.json; mv other .vscode", ".vscode/tasks.json"},
	{"editor's tasks, in a new directory", "mkdir -p a/b/c; mkdir a/b/c/.vscode && echo {} >a/b/c/.vscode/tasks.json", "a/b/c/.vscode/tasks.json"},
	{"editor's tasks, in a new tree", "mkdir -p n/.vscode && echo {} >n/.vscode/tasks.json; mv n m", "m/.vscode/tasks.json"},
	{"agent's settings", "mkdir -p .claude && echo {} >.claude/settings.json", ".claude/settings.json"},
	{"hook in a new repository", "mkdir -p r/.git/hooks && echo x >r/.git/hooks/pre-commit", "r/.git/hooks/pre-commit"},
	{"configuration of a new repository", "mkdir -p r/.git && printf '[core]\\n\\tfsmonitor = touch x\\n' >r/.git/config", "r/.git/config"},
	{"one that is moved in", "mkdir -p q && printf '[core]\\n\\tfsmonitor = touch x\\n' >q/config; mkdir r; mv q r/.git", "r/.git/config"},
	{"one with an include", "mkdir -p r/.git && printf '[include]\\n\\tpath = ../x\\n' >r/.git/config", "r/.git/config"},
	{"one that names another directory", "mkdir -p r/.git && echo ../evil >r/.git/commondir", "r/.git/commondir"},
	{"a .git file", "mkdir r && echo 'gitdir: ../evil' >r/.git", "r/.git"},
	{"a .git link", "mkdir r evil && ln -s ../evil r/.git", "r/.git"},
	{"submodule in a directory, configured", "mkdir -p r/.git/modules/libs/a && printf '[core]\\n\\tfsmonitor = touch x\\n' >r/.git/modules/libs/a/config", "r/.git/modules/libs/a/config"},
	{"hook of a submodule in a directory", "mkdir -p r/.git/modules/libs/a/hooks && echo x >r/.git/modules/libs/a/hooks/post-checkout", "r/.git/modules/libs/a/hooks/post-checkout"},
	{"one that is not closed", "mkdir -p r/.git; exec 3>r/.git/config; printf '[core]\\n\\tfsmonitor = touch x\\n' >&3", "r/.git/config"},
	{"directory laid out as a repository", "mkdir -p b/objects b/refs && printf '[core]\\n\\tfsmonitor = touch x\\n' >b/config && echo 'ref: refs/heads/x' >b/HEAD", "b/HEAD b/config"},
	{"the working directory laid out as one", "mkdir objects refs && printf '[core]\\n\\tfsmonitor = touch x\\n' >config && echo 'ref: refs/heads/x' >HEAD", "HEAD config"},
	{"one that is configured later", "mkdir -p b/objects b/refs && echo 'ref: refs/heads/x' >b/HEAD; sleep 0.1; printf '[core]\\n\\tfsmonitor = touch x\\n' >b/config", "b/HEAD b/config"},
	{"one with a hook", "mkdir -p b/objects b/refs b/hooks && echo 'ref: refs/heads/x' >b/HEAD; echo x >b/hooks/post-checkout", "b/HEAD b/hooks/post-checkout"},
	{"one whose rest is elsewhere", "mkdir -p b c/objects c/refs && printf '[core]\\n\\tfsmonitor = touch x\\n' >c/config && echo ../c >b/commondir && echo 'ref: refs/heads/x' >b/HEAD", "b/HEAD b/commondir"},
	{"one whose configuration is a link", "mkdir -p b/objects b/refs && printf '[core]\\n\\tfsmonitor = touch x\\n' >b/x && ln -s x b/config && echo 'ref: refs/heads/x' >b/HEAD", "b/HEAD b/config"},
	{"one that comes from where nobody looks", "mkdir -p node_modules/b/objects node_modules/b/refs && printf '[core]\\n\\tfsmonitor = touch x\\n' >node_modules/b/config && echo 'ref: refs/heads/x' >node_modules/b/HEAD; mv node_modules/b b", "b/HEAD b/config"},
	{"an empty directory exchanged for a full one", "mkdir .vscode other; echo {} >other/tasks.json; rmdir .vscode; mv other .vscode", ".vscode/tasks.json"},
	{"a name among many", "i=0; while [ $i -lt 300 ]; do mkdir d$i; i=$((i+1)); done; echo x >d299/.envrc", "d299/.envrc"},
}

func TestLatecomers(t *testing.T) {
	for _, tt := range lateAttacks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, aside := range []bool{true, false} {
				work := tempDir(t, "/var/tmp")
				spec := sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", tt.script + "; true"}}
				var notes sync.Map
				spec.Notes = func(line string) { notes.Store(line, true) }
				rec := new(recorder)
				b := &Backend{}
				b.Gate.Events = rec
				if aside {
					b.Outside.Aside = filepath.Join(tempDir(t, "/var/tmp"), "aside")
				}
				if res := run(t, b, spec); res.err != nil || res.ExitCode != 0 {
					t.Fatal(res.err, res.out)
				}
				if planted(work, tt.planted) {
					t.Errorf("%s stands", tt.planted)
				}
				told := 0
				notes.Range(func(any, any) bool { told++; return true })
				if told == 0 || !rec.find(func(e eventtest.Line) bool { return e.Type == "file.refused" }) {
					t.Errorf("%d notes; events %v", told, rec.events)
				}
				if kept, err := os.ReadDir(b.Outside.Aside); aside && (err != nil || len(kept) == 0) {
					t.Errorf("what was made is not kept: %v", err)
				}
			}
			work := tempDir(t, "/var/tmp")
			run(t, without("latecomers"), sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", tt.script}})
			if !planted(work, tt.planted) {
				t.Error("without the layer it was stopped all the same, so this test shows nothing")
			}
		})
	}
}

// planted reports whether all names, which spaces part, are in dir.
func planted(dir, names string) bool {
	for name := range strings.FieldsSeq(names) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// What people do all day makes no such name, and repositories can be made.
func TestLatecomersStay(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	work := tempDir(t, "/var/tmp")
	rec := new(recorder)
	b := &Backend{}
	b.Gate.Events = rec
	script := `git init -q r && cd r && git config user.name x && git config user.email x@example.com && echo a >a && git add a && git commit -qm one &&
git clone -q . ../clone && git worktree add -q ../linked && cd ../linked && echo b >b && git add b && git commit -qm two && cd ../clone && git pull -q origin master main linked 2>/dev/null; git log --format=%s -1
cd .. && git init -q --bare hub.git && git -C r push -q ../hub.git HEAD:refs/heads/x && git clone -q --mirror r mirror.git && git -C mirror.git worktree add -q ../tree && git -C tree log --format=%s -1
mkdir -p x/.github && echo {} >x/package.json && ls -A`
	res := run(t, b, sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null"}, Argv: []string{"/bin/sh", "-c", script}})
	if want := "one\nclone\nhub.git\nlinked\nmirror.git\nr\ntree\nx\n"; res.err != nil || !strings.HasSuffix(res.out, want) {
		t.Errorf("%q, %v", res.out, res.err)
	}
	if rec.find(func(e eventtest.Line) bool { return e.Type == "file.refused" }) {
		t.Errorf("refused: %v", rec.events)
	}
	for _, path := range []string{"r/.git/config", "clone/.git/config", "clone/.git/hooks", "linked/.git", "r/.git/worktrees/linked/commondir", "hub.git/HEAD", "hub.git/hooks", "mirror.git/config", "mirror.git/worktrees/tree/commondir"} {
		if _, err := os.Lstat(filepath.Join(work, path)); err != nil {
			t.Error(err)
		}
	}
}

// The person's own files are left alone, and so is what a rule lets the program
// write.
func TestLatecomersLeaveAlone(t *testing.T) {
	work := tempDir(t, "/var/tmp")
	if err := os.WriteFile(filepath.Join(work, ".envrc"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}, Argv: []string{"/bin/sh", "-c", "mkdir .vscode && echo {} >.vscode/tasks.json"}}
	var err error
	if spec.Files, err = (files.Section{Write: []files.Rule{{Path: ".vscode"}}}).In(FilesPlace(nil, spec.Env, work)); err != nil {
		t.Fatal(err)
	}
	if res := run(t, &Backend{}, spec); res.err != nil || res.ExitCode != 0 {
		t.Error(res.err, res.out)
	}
	for name, want := range map[string]string{".envrc": "mine", ".vscode/tasks.json": "{}\n"} {
		if data, err := os.ReadFile(filepath.Join(work, name)); string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

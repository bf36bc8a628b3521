package latecomers

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
	"egressd/sandbox/process/places"
)

// What git init, git clone, git submodule and git worktree write is harmless; what
// names a command, a file or another configuration is not.
func TestHarmless(t *testing.T) {
	for text, want := range map[string]bool{
		"": true,
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n":   true,
		"[remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n": true,
		"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n# x\n; y\n":                             true,
		"[submodule \"x\"]\n\tactive = true\n\turl = https://example.com/x\n":                                     true,
		"[user]\n\tname = [x]\n\temail = x@example.com\n":                                                         true,

		"[core]\n\tfsmonitor = touch x\n":                             false,
		"[CORE]\n\tFsMonitor = touch x\n":                             false,
		"[core] fsmonitor = touch x\n":                                false,
		"[core]\n\tbare = \\\nfalse\n":                                false,
		"[core]\n\tsshCommand = x\n":                                  false,
		"[core]\n\thooksPath = x\n":                                   false,
		"[core \"x\"]\n\tfsmonitor = x\n":                             false,
		"[core.x]\n\tbare = x\n":                                      false,
		"[include]\n\tpath = x\n":                                     false,
		"[includeIf \"gitdir:/\"]\n\tpath = x\n":                      false,
		"[alias]\n\tst = !x\n":                                        false,
		"[filter \"x\"]\n\tclean = x\n":                               false,
		"[remote \"x\"]\n\tuploadpack = x\n":                          false,
		"[remote \"x\"]\n\turl = ext::sh -c x\n":                      false,
		"[submodule \"x\"]\n\tupdate = !x\n":                          false,
		"[credential]\n\thelper = !x\n":                               false,
		"fsmonitor = x\n":                                             false,
		"[remote \"a\"]b\"]\n\turl = x\n":                             false,
		"\ufeff[core]\n\tbare = false\n":                              false,
		"[core]\n" + strings.Repeat("\tbare = false\n", maxConfig/14): false,
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := harmless(path); got != want {
			t.Errorf("%.60q: %v, want %v", text, got, want)
		}
	}
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "config"), 0o600); err != nil {
		t.Fatal(err)
	}
	if harmless(filepath.Join(dir, "config")) || harmless(dir) || harmless(dir+"/none") {
		t.Error("what is no file is harmless")
	}
}

// guard makes one for dir, without its goroutine.
func guard(t *testing.T, dir string) (*Guard, *[]Refusal) {
	t.Helper()
	gate, err := files.Section{}.In(files.Place{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := places.Find(places.Machine{Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	// What other tests do in the directories for temporary files is not this one's.
	plan.Watch = slices.DeleteFunc(plan.Watch, func(at string) bool { return !mountinfo.Within(at, dir) })
	var got []Refusal
	return New(Config{Gate: gate, Plan: plan, Refused: func(r Refusal) { got = append(got, r) }, Log: slog.New(slog.DiscardHandler)}), &got
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// When the kernel's queue was too short, everything is looked at.
func TestOverflow(t *testing.T) {
	dir := realTemp(t)
	g, got := guard(t, dir)
	if err := os.WriteFile(filepath.Join(dir, ".envrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	event := make([]byte, unix.SizeofInotifyEvent)
	binary.NativeEndian.PutUint32(event, ^uint32(0))
	binary.NativeEndian.PutUint32(event[4:], unix.IN_Q_OVERFLOW)
	g.events(event)
	if len(*got) != 1 || (*got)[0].Path != filepath.Join(dir, ".envrc") {
		t.Errorf("refused: %+v", *got)
	}
}

// next reports the next event about name. Others come first where other programs
// are at work in a directory that is watched, such as /tmp.
func next(t *testing.T, g *Guard, name string) []byte {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		n, err := g.in.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			if string(bytes.TrimRight(b[unix.SizeofInotifyEvent:size], "\x00")) == name {
				return b[:size]
			}
			b = b[size:]
		}
	}
}

// The kernel tells of a name; an event that lies about its length is nothing.
func TestNotified(t *testing.T) {
	dir := realTemp(t)
	g, got := guard(t, dir)
	if err := g.notify(); err != nil {
		t.Fatal(err)
	}
	defer g.in.Close()
	if err := os.Symlink("x", filepath.Join(dir, ".envrc")); err != nil {
		t.Fatal(err)
	}
	event := next(t, g, ".envrc")
	g.events(event[:len(event)-1])
	if len(*got) != 0 {
		t.Errorf("half an event was taken: %+v", *got)
	}
	g.events(event)
	if len(*got) != 1 {
		t.Errorf("refused: %+v", *got)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".envrc")); err == nil {
		t.Error("it stands")
	}
}

// A linked worktree may be met before the repository that it belongs to.
func TestLinkedFirst(t *testing.T) {
	dir := realTemp(t)
	g, got := guard(t, dir)
	for _, repo := range []string{"z.git", "z/.git"} {
		tree := filepath.Join(dir, repo, "worktrees", "x")
		for _, d := range []string{tree, filepath.Join(dir, repo, "objects"), filepath.Join(dir, repo, "refs"), filepath.Join(dir, "a"+repo[:2])} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range map[string]string{
			filepath.Join(dir, repo, "HEAD"): "ref: refs/heads/x\n", filepath.Join(tree, "HEAD"): "ref: refs/heads/x\n",
			filepath.Join(tree, "commondir"): "../..\n", filepath.Join(dir, "a"+repo[:2], ".git"): "gitdir: " + tree + "\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w := g.byPath[dir]
		g.judge(w, "a"+repo[:2], true)
		g.judge(w, repo[:strings.IndexAny(repo+"/", "/")], true)
	}
	if len(*got) != 0 {
		t.Errorf("refused: %+v", *got)
	}
}

// What the person had stays, and the name goes that made its directory one for git.
func TestBareAroundThePersons(t *testing.T) {
	for _, name := range []string{"config", "hooks/deploy", "commondir"} {
		dir := realTemp(t)
		own := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(own, []byte("key = value\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		g, got := guard(t, dir)
		g.started = time.Now().Add(time.Hour) // so that what was there is older, and what comes is told by its name
		for _, made := range []string{"objects", "refs", "HEAD"} {
			if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
				t.Fatal(err)
			}
			g.judge(g.byPath[dir], made, true)
		}
		if _, err := os.Lstat(own); err != nil || len(*got) != 1 || laidOut(dir) {
			t.Errorf("%s: %v; refused %+v", name, err, *got)
		}
	}
}

// An empty directory is obeyed by nobody: it stays until something comes into it,
// which the kernel tells of, or a look.
func TestHollow(t *testing.T) {
	for _, told := range []bool{true, false} {
		dir := realTemp(t)
		g, got := guard(t, dir)
		if told {
			if err := g.notify(); err != nil {
				t.Fatal(err)
			}
			defer g.in.Close()
		}
		hear := func(name string) {
			if told {
				g.events(next(t, g, name))
			} else {
				g.poll(false)
			}
		}
		hollow := filepath.Join(dir, ".vscode")
		if err := os.Mkdir(hollow, 0o700); err != nil {
			t.Fatal(err)
		}
		hear(".vscode")
		if _, err := os.Lstat(hollow); err != nil || len(*got) != 0 {
			t.Errorf("an empty directory was moved away: %v, %+v", err, *got)
		}
		if err := os.WriteFile(filepath.Join(hollow, "tasks.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		hear("tasks.json")
		if _, err := os.Lstat(hollow); err == nil || len(*got) != 1 || (*got)[0].Path != hollow {
			t.Errorf("refused: %+v", *got)
		}
	}
}

// A link that takes the place of a directory leads nowhere.
func TestLinkOnTheWay(t *testing.T) {
	dir, other := realTemp(t), realTemp(t)
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	g, got := guard(t, dir)
	if err := os.WriteFile(filepath.Join(other, ".envrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(sub); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, sub); err != nil {
		t.Fatal(err)
	}
	g.aside(sub, ".envrc", files.Decision{})
	g.look(sub, 0, false)
	if _, err := os.Lstat(filepath.Join(other, ".envrc")); err != nil || len(*got) != 0 {
		t.Errorf("a file of the person's was moved: %v, %+v", err, *got)
	}
}

// With too many directories a guard says so, once, and goes on.
func TestTooManyDirectories(t *testing.T) {
	dir := realTemp(t)
	g, _ := guard(t, dir)
	said := new(strings.Builder)
	g.Log = slog.New(slog.NewTextHandler(said, nil))
	for i := range maxWatches + 3 {
		g.watch(filepath.Join(dir, "d", strings.Repeat("x", i%200), string(rune('a'+i%26)), strings.Repeat("y", i/200)), 0)
	}
	if len(g.byPath) > maxWatches || strings.Count(said.String(), "too many") != 1 {
		t.Errorf("%d directories; said %q", len(g.byPath), said)
	}
}

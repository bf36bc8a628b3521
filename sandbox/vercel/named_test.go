package vercel

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
	"egressd/sandbox/vercel/network"
)

// memory remembers as launch's records do.
type memory struct {
	mu        sync.Mutex
	stamp     string
	marks     map[string]string
	snapshots map[string]string
}

func (m *memory) Load(string) (string, map[string]string, error) { return m.stamp, m.marks, nil }

func (m *memory) Save(_, stamp string, marks map[string]string) error {
	m.stamp, m.marks = stamp, maps.Clone(marks)
	return nil
}

func (m *memory) Snapshot(task string) (string, error) { return m.snapshots[task], nil }

func (m *memory) Set(task, id string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.snapshots[task]
	m.snapshots[task] = id
	return old, nil
}

func (m *memory) Drop(task, id string) error {
	if m.snapshots[task] == id {
		delete(m.snapshots, task)
	}
	return nil
}

// named is a world whose runs have a name.
func named(t *testing.T, cfg fake.Config) (*world, *memory) {
	w := newWorld(t, cfg)
	m := &memory{snapshots: map[string]string{}}
	w.back.Name, w.back.Synced, w.back.Tasks = "box", m, m
	return w, m
}

// count is how many calls have that name.
func count(calls []string, name string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, name) {
			n++
		}
	}
	return n
}

// A sandbox with a name is made once; later runs find its disk as they left it,
// and send what is different.
func TestNamed(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.files("a", "a", "b", "b", "dir/c", "c", "swap", "file")
	w.ok(0, "echo new >new; echo hidden >/vercel/hidden")
	w.has("new", "new\n")
	w.alone()
	calls := w.calls()
	if count(calls, "POST /v3/sandboxes") != 1 || count(calls, "DELETE") != 0 || count(calls, "stop") != 1 {
		t.Errorf("first: %q", calls)
	}

	w.ok(0, "cat /vercel/hidden a new")
	if out := w.read(w.out); out != "hidden\nanew\n" {
		t.Errorf("output %q", out)
	}
	if calls = w.calls(); count(calls, "POST /v3/sandboxes") != 0 || count(calls, "fs/write") != 0 {
		t.Errorf("nothing changed, and yet: %q", calls)
	}

	w.files("a", "changed")
	for _, name := range []string{"b", "new", "dir/c", "swap"} {
		must(t, os.Remove(filepath.Join(w.dir, name)))
	}
	must(t, os.Remove(filepath.Join(w.dir, "dir")))
	w.files("dir", "now a file", "swap/in", "now a directory")
	w.ok(0, "cat a dir swap/in; ls; echo later >c")
	if out := w.read(w.out); out != "changednow a filenow a directorya\ndir\nswap\n" {
		t.Errorf("output %q", out)
	}
	w.has("b", "-")
	w.has("new", "-")
	w.has("c", "later\n")
	w.alone()
}

// What a run left there that was not brought back is not swept away by the next
// one, and comes back then.
func TestNamedInterrupted(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.files("a", "a", "b", "b", "mine", "mine", "dir/deep", "deep")
	must(t, os.Symlink("a", filepath.Join(w.dir, "link")))
	w.fault("POST /v2/sandboxes/sessions/*/fs/read status=404 times=-1")
	if _, err := w.run("echo work >work; echo x >a; rm -r mine dir link"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	w.api.ClearFaults()
	w.has("work", "-")
	must(t, os.Remove(filepath.Join(w.dir, "b")))
	w.ok(0, "cat work a; ls")
	if out := w.read(w.out); out != "work\nx\na\ndir\nlink\nmine\nwork\n" {
		t.Errorf("output %q", out)
	}
	w.has("work", "work\n")
	w.has("a", "x\n")
	// What a run that came to nothing deleted there is not deleted here.
	w.has("mine", "mine")
	w.has("dir/deep", "deep")
	w.has("link", "x\n")
}

// A disk that was set back lacks files that the last run had. They are sent
// again; they are not deleted here.
func TestNamedSetBack(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.files("a", "a")
	w.ok(0, "echo one >one")
	k := &Kept{Client: w.client, Name: "box"}
	old, err := k.Snapshot(t.Context(), 0)
	must(t, err)
	w.ok(0, "echo two >two")
	w.files("mine", "mine")
	w.ok(0, "true")
	must(t, k.Restore(t.Context(), old))
	w.ok(0, "ls")
	if out := w.read(w.out); out != "a\nmine\none\ntwo\n" {
		t.Errorf("there: %q", out)
	}
	for name, want := range map[string]string{"a": "a", "one": "one\n", "two": "two\n", "mine": "mine"} {
		w.has(name, want)
	}
}

// The policy of a run is in force before anything of it is there: what boots is
// booted with it, what runs is given it.
func TestNamedPolicy(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		w, _ := named(t, fake.Config{})
		w.files("a", "a")
		w.back.Keep, w.back.Network = keep, &network.Network{All: true}
		w.ok(0, "true")
		w.calls()
		w.back.Keep, w.back.Network = false, &network.Network{Names: []string{"one.example"}}
		w.back.Tags, w.back.Ports = map[string]string{"k": "v"}, []int{3000}
		w.ok(0, "true")
		reqs := w.api.Requests()
		calls := w.calls()
		patch, set, first := slices.Index(calls, "PATCH /v2/sandboxes/box"), slices.Index(calls, "network-policy"), slices.IndexFunc(calls, func(s string) bool { return strings.HasPrefix(s, "cmd") })
		boots := slices.IndexFunc(reqs, func(r fake.Request) bool { return strings.Contains(r.Query, "resume=true") })
		if patch < 0 || set < patch || first < set || (boots < 0) != keep || boots >= 0 && boots < patch {
			t.Errorf("calls %q, boots at %d", calls, boots)
		}
		var body struct {
			NetworkPolicy any
			Tags          map[string]string
			Ports         []int
		}
		must(t, json.Unmarshal(reqs[patch].Body, &body))
		if string(reqs[set].Body) != `{"allow":["one.example"]}` || body.Tags["k"] != "v" || len(body.Ports) != 1 {
			t.Errorf("%s\n%s", reqs[patch].Body, reqs[set].Body)
		}
		w.alone()
	}
}

// A sandbox in which something else runs is left alone; so is one that is kept,
// but not after a time limit, which may leave anything running.
func TestNamedStays(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.back.Shared = func() bool { return true }
	w.ok(0, "true")
	if got := count(w.calls(), "stop"); got != 0 {
		t.Error("stopped under somebody else")
	}
	w.back.Shared, w.back.Keep = nil, true
	w.ok(0, "true")
	if got := count(w.calls(), "stop"); got != 0 || !slices.ContainsFunc(w.said, func(s string) bool { return strings.Contains(s, "left running until") }) {
		t.Errorf("stopped though it is kept: %q", w.said)
	}
	spec := w.spec("sleep 1000")
	spec.Timeout = 100e6
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 124 {
		t.Error(res, err)
	}
	w.alone()
}

// Sessions that end between two requests, sandboxes that are stopping, and those
// that have nothing to go on from.
func TestNamedTransitions(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]string{
		"stopping":    {"GET /v2/sandboxes/box skip=1 status=422 times=2"},
		"ended":       {"POST /v2/sandboxes/sessions/*/network-policy status=410"},
		"no snapshot": {"GET /v2/sandboxes/box skip=1 status=400 code=bad_request message=snapshot"},
		"expired":     {"GET /v2/sandboxes/box skip=1 status=410 code=snapshot_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := named(t, fake.Config{})
			w.files("a", "a")
			w.ok(0, "echo b >b")
			w.fault(faults...)
			w.ok(0, "cat a")
			if out := w.read(w.out); out != "a" {
				t.Errorf("output %q", out)
			}
			w.alone()
		})
	}
}

// Two first runs of one name at once: one makes it, the other finds it.
func TestNamedRace(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.fault("GET /v2/sandboxes/box status=404")
	w.watch(func(n int, _ *http.Request) {
		if n == 1 {
			if _, err := w.client.Create(t.Context(), api.CreateRequest{Name: "box"}); err != nil {
				t.Error(err)
			}
		}
	})
	w.files("a", "a")
	w.ok(0, "cat a")
	w.alone()
	if !missing(&api.Error{Status: 400, Message: "Named sandbox 'x' Not Found"}) || missing(&api.Error{Status: 500, Message: "not found"}) {
		t.Error("what is taken for a sandbox that is not there")
	}
}

// A task goes on from its last run's snapshot.
func TestTask(t *testing.T) {
	t.Parallel()
	w, m := named(t, fake.Config{})
	w.back.Name, w.back.Task = "", "T"
	w.files("a", "a")
	w.ok(3, "echo deps >/vercel/deps; echo b >b; exit 3")
	first := m.snapshots["T"]
	must(t, os.Remove(filepath.Join(w.dir, "b")))
	w.calls()
	w.ok(0, "cat /vercel/deps a; ls")
	if out := w.read(w.out); out != "deps\naa\n" {
		t.Errorf("output %q", out)
	}
	if count(w.calls(), "DELETE /v2/sandboxes/snapshots/"+first) != 1 || m.snapshots["T"] == first {
		t.Error("the old snapshot stays")
	}
	w.clean()

	// A snapshot that does not boot is given up; what only cannot be had now is not.
	good := m.snapshots["T"]
	w.fault("POST /v3/sandboxes status=503 times=-1")
	if _, err := w.run("true"); err == nil || m.snapshots["T"] != good {
		t.Errorf("%v, %q", err, m.snapshots)
	}
	w.clean()
	w.fault("POST /v3/sandboxes status=410 code=snapshot_not_found")
	w.ok(0, "cat a; test ! -e /vercel/deps")
	if now := m.snapshots["T"]; now == good || now == "" || !slices.ContainsFunc(w.said, func(s string) bool { return strings.Contains(s, "begins anew") }) {
		t.Errorf("%q, %q", now, w.said)
	}
	w.clean()

	// A run that came to nothing leaves the snapshot of the last one.
	good = m.snapshots["T"]
	w.fault("POST /v2/sandboxes/sessions/*/cmd status=400 times=-1")
	if _, err := w.run("true"); err == nil || m.snapshots["T"] != good {
		t.Errorf("%v, %q", err, m.snapshots)
	}
	w.clean()
}

// Files go to and from a sandbox that is kept.
func TestCopy(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.ok(0, "true")
	k := &Kept{Client: w.client, Name: "box", Workdir: "/vercel/workspace"}
	w.files("tree/a", "a", "tree/sub/b", "b", "one", "one")
	must(t, os.Symlink("a", filepath.Join(w.dir, "tree/link")))
	must(t, k.Push(t.Context(), filepath.Join(w.dir, "tree"), "there"))
	must(t, k.Push(t.Context(), filepath.Join(w.dir, "one"), "there/"))
	back := t.TempDir()
	must(t, os.WriteFile(filepath.Join(back, "mine"), []byte("mine"), 0o600))
	must(t, k.Pull(t.Context(), "there", back))
	w.dir = back
	for name, want := range map[string]string{"a": "a", "sub/b": "b", "one": "one", "mine": "mine", "link": "a"} {
		w.has(name, want)
	}
	if err := k.Pull(t.Context(), "there", back); err != nil {
		t.Errorf("the same again: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(back, "a"), []byte("other"), 0o600))
	if err := k.Pull(t.Context(), "there", back); err == nil || !strings.Contains(err.Error(), "Remove it") {
		t.Errorf("a file that is here: %v", err)
	}
	w.has("a", "other")
	if err := k.Pull(t.Context(), "nothing", back); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(t, k.Pull(t.Context(), "there/one", filepath.Join(back, "two")))
	w.has("two", "one")
	// A link cannot take the place of a directory there; that is told.
	links := t.TempDir()
	must(t, os.Symlink("x", filepath.Join(links, "sub")))
	if err := k.Push(t.Context(), links, "there"); err == nil {
		t.Error("lost a link")
	}
	must(t, k.Stop(t.Context()))
	must(t, k.Stop(t.Context()))
	must(t, k.Delete(t.Context()))
	must(t, k.Delete(t.Context()))
}

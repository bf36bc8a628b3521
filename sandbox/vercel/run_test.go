package vercel

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
	"egressd/sandbox/vercel/network"
)

// The calls of a run in which all goes well are these, VERCEL.md section 13.
func TestSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a", "sub/b", "b", ".dot", "d", "gone", "g", "empty", "")
	must(t, os.Chmod(filepath.Join(w.dir, "a"), 0o755))
	res, err := w.back.Run(t.Context(), w.secretive(`test -x a && test -z "$(cat empty)" && case "$VALUE" in env-*) true;; *) false; esac && cat .dot sub/b
		echo new >sub/new; echo changed >>sub/b; rm gone; chmod +x .dot; ln -s a link; echo oops >&2; exit 3`))
	if err != nil || res.ExitCode != 3 {
		t.Fatal(res, err, w.read(w.err))
	}
	reqs := w.api.Requests()
	want := []string{"POST /v3/sandboxes", "cmd mkdir", "fs/write", "cmd sh", "cmd tar", "fs/read", "stop", "DELETE /v2/sandboxes/launch-s" + strings.ToLower(t.Name())}
	if got := w.calls(); !slices.Equal(got, want) {
		t.Errorf("calls %q\nwant  %q", got, want)
	}
	if out, errs := w.read(w.out), w.read(w.err); out != "db" || errs != "oops\n" {
		t.Errorf("output %q and %q", out, errs)
	}
	w.has("sub/new", "new\n")
	w.has("sub/b", "bchanged\n")
	w.has("gone", "-")
	if link, err := os.Readlink(filepath.Join(w.dir, "link")); link != "a" {
		t.Error(link, err)
	}
	if info, err := os.Stat(filepath.Join(w.dir, ".dot")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Error("the mode did not come back", err)
	}
	var changed []string
	for _, e := range w.events {
		changed = append(changed, e.Change+" "+e.Path)
	}
	slices.Sort(changed)
	if want := []string{"added /link", "added /sub/new", "deleted /gone", "modified /.dot", "modified /sub/b"}; !slices.Equal(changed, want) {
		t.Errorf("events %q", changed)
	}
	w.secrets(reqs)
	w.clean()
	// Exactly the members that the service knows, V6.
	var body map[string]any
	must(t, json.Unmarshal(reqs[0].Body, &body))
	if body["persistent"] != false || body["projectId"] != "prj_t" || body["source"] != nil || body["runtime"] != nil || body["env"] != nil {
		t.Errorf("create: %s", reqs[0].Body)
	}
}

// A workspace without files makes no write, V10.
func TestNothingToSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.ok(0, "pwd")
	want := []string{"POST /v3/sandboxes", "cmd mkdir", "cmd sh", "cmd tar", "fs/read", "stop", "DELETE /v2/sandboxes/launch-s" + strings.ToLower(t.Name())}
	if got := w.calls(); !slices.Equal(got, want) {
		t.Errorf("calls %q", got)
	}
	if out := w.read(w.out); out != "/vercel/workspace\n" {
		t.Errorf("ran in %q", out)
	}
}

// What travels: everything but what git ignores and the seed's names.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	odd := []string{"-rf", "new\nline", "\xff\xfe", "ümläut", "quo'te\"", "*", strings.Repeat("d/", 120) + strings.Repeat("n", 200)}
	for _, name := range odd {
		w.files(name, "odd")
	}
	w.files(".gitignore", "*.log\n", "x.log", "l", ".git/config", "c", "node_modules/m", "m", "sub/.warrant/w", "w", "Case", "1", "case", "2")
	must(t, os.Symlink("/etc/passwd", filepath.Join(w.dir, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(w.dir, "new\nlink")))
	must(t, os.MkdirAll(filepath.Join(w.dir, "empty/dir"), 0o755))
	must(t, os.WriteFile(filepath.Join(w.dir, "locked"), []byte("x"), 0o400))
	must(t, os.Truncate(filepath.Join(w.dir, "case"), 1<<20)) // a hole
	w.ok(0, `set -x; ls -A --zero | tr -dc "\0" | wc -c; test ! -e x.log && test ! -e .git && test ! -e node_modules && test ! -e sub/.warrant && test -d empty/dir &&
		test "$(readlink link)" = /etc/passwd && test -L "new
link" && test "$(stat -c %a locked)" = 400 && test "$(stat -c %s case)" = 1048576 && cat ./-rf`)
	if out := w.read(w.out); out != "15\nodd" {
		t.Errorf("there: %q", out)
	}
	if c := w.changes; len(c) != 1 || len(c[0].Added)+len(c[0].Changed)+len(c[0].Deleted)+len(c[0].Conflicts)+len(c[0].Refused) != 0 {
		t.Errorf("came back: %+v", c)
	}
	w.back.All = true
	w.ok(0, `cat x.log; for f in *; do mv -- "$f" "moved $f"; done; rm -r "moved d"`)
	for _, name := range odd[:6] {
		w.has(name, "-")
		w.has("moved "+name, "odd")
	}
	w.has("d", "-")
	w.has("node_modules/m", "m")
	w.clean()
}

// What may keep a secret, and what cannot be read, is not sent, said, and left
// alone; what runs here later does not come back.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files(".env", "TOKEN=x", "tls/server.key", "key", ".github/workflows/ci.yml", "ci", "data/db", "db", "a", "a", ".vscode/settings.json", "{}")
	want := ".github .vscode a data tls "
	if os.Geteuid() != 0 {
		must(t, os.Chmod(filepath.Join(w.dir, "data"), 0))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.dir, "data"), 0o700) })
		want = ".github .vscode a tls "
	}
	w.ok(0, `echo $(ls -A) "$(ls tls)"; echo evil >.vscode/settings.json; echo evil >.env; echo b >>a; : >none; chmod 0 none`)
	if out := w.read(w.out); out != want+"\n" {
		t.Errorf("there: %q", out)
	}
	w.has(".env", "TOKEN=x")
	w.has("tls/server.key", "key")
	w.has(".vscode/settings.json", "{}")
	w.has("a", "ab\n")
	if info, err := os.Lstat(filepath.Join(w.dir, "none")); err != nil || info.Mode().Perm() != 0 {
		t.Error(info, err)
	}
	if said := strings.Join(w.said, "\n"); !strings.Contains(said, "secrets: .env, tls/server.key. To send") || (os.Geteuid() != 0) != strings.Contains(said, "not read it: data/.") {
		t.Error(said)
	}
	if c := w.changes[0].Conflicts; len(c) != 2 {
		t.Errorf("%+v", c)
	}
	spec := w.spec("cat .env; echo more >>.env")
	var err error
	spec.Files, err = files.Section{Write: []files.Rule{{Path: ".env"}}}.In(files.Place{Workspace: w.dir, Elsewhere: true})
	must(t, err)
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 || w.read(w.out) != "TOKEN=x" {
		t.Error(res, err)
	}
	w.has(".env", "TOKEN=xmore\n")
	w.clean()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		argv []string
		want int
		err  string
	}{
		{[]string{"true"}, 0, ""},
		{[]string{"sh", "-c", "exit 77"}, 77, ""},
		{[]string{"sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"no-such-program"}, 127, "not found in the sandbox"},
	} {
		t.Run(tt.argv[0], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			spec := w.spec("")
			spec.Argv = tt.argv
			res, err := w.back.Run(t.Context(), spec)
			if res.ExitCode != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%d, %v", res.ExitCode, err)
			}
			if calls := w.calls(); tt.want == 127 && slices.Contains(calls, "cmd tar") {
				t.Errorf("nothing ran, and yet: %q", calls)
			}
			w.clean()
		})
	}
}

// Where a program starts, and what it reads.
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("in", "from a file")
	w.back.Workdir = "/vercel/elsewhere//"
	spec := w.spec("")
	spec.Argv, spec.Script, spec.Shell = nil, "pwd; cat; [[ -f in ]] && echo bash", "bash"
	var err error
	spec.Stdin, err = os.Open(filepath.Join(w.dir, "in"))
	must(t, err)
	defer spec.Stdin.Close()
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := w.read(w.out); out != "/vercel/elsewhere\nfrom a filebash\n" {
		t.Errorf("output %q", out)
	}
	w.clean()
}

// What cannot run is said before anything is asked, V2 to V5.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	for _, tt := range []struct {
		change func(*Backend)
		want   string
	}{
		{func(b *Backend) { b.Client = nil }, "no credentials"},
		{func(b *Backend) { b.Workdir = "rel" }, "must be an absolute VM path: rel"},
		{func(b *Backend) { b.Workdir = "/a\x00b" }, "must be an absolute VM path"},
		{func(b *Backend) { b.Workdir = "//" }, "the whole VM"},
		{func(b *Backend) { b.Workdir = "/a/../b" }, "must not contain '..': /a/../b"},
		{func(b *Backend) { b.Runtime, b.Image = "node24", "x" }, "exclude each other"},
		{func(b *Backend) { b.VCPUs = 3 }, "3 vCPUs"},
		{func(b *Backend) { b.Ports = []int{80} }, "port 80"},
		{func(b *Backend) { b.Ports = []int{3000, 3000} }, "port 3000"},
		{func(b *Backend) { b.Tags = map[string]string{"a": strings.Repeat("x", 257)} }, "the tag"},
		{func(b *Backend) { b.Task, b.Source = "t", &api.Source{Type: "snapshot", SnapshotID: "s"} }, "--task"},
	} {
		b := w.back
		tt.change(&b)
		res, err := b.Run(t.Context(), w.spec("true"))
		var unable *sandbox.CapabilityError
		if !errors.As(err, &unable) || !strings.Contains(err.Error(), tt.want) || res.ExitCode != exitLauncher {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("asked %q", got)
	}
	if b := w.back; b.checkWorkdir() != nil || (&Backend{Options: Options{Workdir: "/"}}).workdir("/x") != "/" {
		t.Error("a directory that is fine")
	}
}

// A policy becomes exactly these words, V7.
func TestPolicyWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n    *network.Network
		want string
	}{
		{nil, `{"mode":"deny-all"}`},
		{&network.Network{}, `{"mode":"deny-all"}`},
		{&network.Network{All: true}, `{"mode":"allow-all"}`},
		{&network.Network{Names: []string{"a.b", "*.c.d"}}, `{"allow":["a.b","*.c.d"]}`},
		{&network.Network{DenyNets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, `{"mode":"deny-all"}`},
		{
			&network.Network{Names: []string{"a.b", "c.d"}, Headers: map[string]map[string]string{"a.b": {"x": "y"}}, AllowNets: []netip.Prefix{netip.MustParsePrefix("1.2.3.0/24")}},
			`{"allow":{"a.b":[{"transform":[{"headers":{"x":"y"}}]}],"c.d":[]},"subnets":{"allow":["1.2.3.0/24"]}}`,
		},
	} {
		got, err := json.Marshal((&Backend{Network: tt.n}).Policy())
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %v, want %s", got, err, tt.want)
		}
	}
}

// A snapshot brings its own runtime, V5; other sources keep the workspace here.
func TestSources(t *testing.T) {
	t.Parallel()
	b := &Backend{Options: Options{Runtime: "node24", Source: &api.Source{Type: "snapshot", SnapshotID: "snap_1"}}}
	if r := b.request("n", "", nil); r.Runtime != "" || r.Source.SnapshotID != "snap_1" {
		t.Errorf("%+v", r)
	}
	b.Source = &api.Source{Type: "git", URL: "https://example.com/x"}
	if r := b.request("n", "", nil); r.Runtime != "node24" || b.workdir("/vercel") != "/vercel" {
		t.Errorf("%+v", r)
	}
}

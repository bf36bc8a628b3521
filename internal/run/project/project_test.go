package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"egressd/policy"
)

// hostile is what a repository may carry: its deny rule alone may count.
const hostile = `allow: [evil.example.com]
deny: [bad.example.com]
presets: [github]
hosts: {good.example.com: [203.0.113.9]}
intranet: [good.example.com]
dns: {upstreams: [203.0.113.9]}
audit: true
files: {write: [/etc], read: [~/.ssh], hide: [/srv/x], home: rw}
limits: {connections: 1000000, bytes_per_flow: 10}
`

const own = "allow: [good.example.com, bad.example.com]\nlimits: {connections: 5, bytes_per_flow: 1000}\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// load finds the files and joins them with the person's own policy, as a run does.
func load(t *testing.T, at Places) ([]*File, *policy.Policy) {
	t.Helper()
	found, err := Find(at)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := policy.ParseFile("own.yaml", []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	docs := []*policy.Document{mine}
	for _, f := range found {
		docs = append(docs, f.Counts)
	}
	p, err := policy.Compile(docs...)
	if err != nil {
		t.Fatal(err)
	}
	return found, p
}

func allowed(t *testing.T, p *policy.Policy, name string) bool {
	t.Helper()
	h, err := policy.ParseHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Decide(policy.Request{Host: h, Port: 443}).Allowed()
}

func TestHostileRepository(t *testing.T) {
	dir := t.TempDir()
	at := Places{Dir: filepath.Join(dir, "sub"), Trust: Store{Dir: filepath.Join(dir, "state")}}
	write(t, filepath.Join(dir, Name), hostile)
	write(t, filepath.Join(dir, "sub", "x"), "")
	found, p := load(t, at)
	if len(found) != 1 || found[0].State != Untrusted {
		t.Fatalf("found %+v", found)
	}
	for _, name := range []string{"evil.example.com", "bad.example.com", "github.com"} {
		if allowed(t, p, name) {
			t.Errorf("%s is allowed", name)
		}
	}
	if !allowed(t, p, "good.example.com") {
		t.Error("what only the person's own policy allows is denied")
	}
	good, err := policy.ParseHost("good.example.com")
	if err != nil {
		t.Fatal(err)
	}
	rules := p.FileRules()
	if p.Audit() || p.Static(good) != nil || len(p.Intranet())+len(p.DNS().Upstreams)+len(rules.Write)+len(rules.Read) > 0 || rules.Home != 0 {
		t.Errorf("more than the deny rules counts: %v, %v", rules, p.DNS())
	}
	if len(rules.Hide) != 1 {
		t.Errorf("what the file hides: %v", rules.Hide)
	}
	if l := p.Limits(); l.Connections != 5 || l.BytesPerFlow != 10 {
		t.Errorf("limits are not the smaller ones: %+v", l)
	}
}

func TestTrust(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	at := Places{Dir: dir, Trust: Store{Dir: filepath.Join(dir, "state")}}
	const first = "allow: [evil.example.com]\n"
	write(t, path, first)
	found, _ := load(t, at)
	if err := at.Trust.Add(found[0]); err != nil {
		t.Fatal(err)
	}
	found, p := load(t, at)
	if found[0].State != Trusted || !allowed(t, p, "evil.example.com") {
		t.Fatalf("%s after it was trusted", found[0].State)
	}
	if list, err := at.Trust.List(); err != nil || !slices.Equal(list, []string{found[0].Path}) {
		t.Errorf("list %q, %v", list, err)
	}
	const second = "allow: [other.example.com]\n"
	write(t, path, second)
	found, p = load(t, at)
	if found[0].State != Changed || allowed(t, p, "other.example.com") || allowed(t, p, "evil.example.com") {
		t.Errorf("a changed file: %s", found[0].State)
	}
	if err := at.Trust.Add(found[0]); err != nil {
		t.Fatal(err)
	}
	write(t, path, first) // what was trusted before is not trusted for ever
	if found, _ = load(t, at); found[0].State != Changed {
		t.Errorf("an older text: %s", found[0].State)
	}
	write(t, path, second)
	write(t, filepath.Join(dir, "copy", Name), second) // the same text elsewhere
	found, _ = load(t, Places{Dir: filepath.Join(dir, "copy"), Trust: at.Trust})
	if len(found) != 2 || found[0].State != Untrusted || found[1].State != Trusted {
		t.Errorf("a copy: %+v", found)
	}
	if err := at.Trust.Remove(found[1].Path); err != nil {
		t.Fatal(err)
	}
	if found, _ = load(t, at); found[0].State != Untrusted {
		t.Errorf("after --remove: %s", found[0].State)
	}
}

// A file nearer to the working directory takes nothing away from those above it.
func TestNearerFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, Name), "deny: [bad.example.com]\n")
	write(t, filepath.Join(dir, "sub", Name), "")
	found, p := load(t, Places{Dir: filepath.Join(dir, "sub")})
	if len(found) != 2 || allowed(t, p, "bad.example.com") {
		t.Errorf("found %d files", len(found))
	}
}

// The user's own file may have been made by a program in an earlier run.
func TestOwnFile(t *testing.T) {
	dir := t.TempDir()
	at := Places{Dir: dir, Config: filepath.Join(dir, "config.yaml"), Trust: Store{Dir: filepath.Join(dir, "state")}}
	if found, _ := load(t, at); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	write(t, at.Config, "allow: [evil.example.com]\n")
	found, p := load(t, at)
	if len(found) != 1 || found[0].State != Untrusted || allowed(t, p, "evil.example.com") {
		t.Fatalf("found %+v", found)
	}
	if err := at.Trust.Add(found[0]); err != nil {
		t.Fatal(err)
	}
	if _, p = load(t, at); !allowed(t, p, "evil.example.com") {
		t.Error("a trusted file does not count")
	}
}

func TestRefused(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"is a link":        func(path string) error { return os.Symlink("/etc/hostname", path) },
		"is not a regular": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"has no key":       func(path string) error { return os.WriteFile(path, []byte("alow: [x]\n"), 0o600) },
		"longer than":      func(path string) error { return os.WriteFile(path, make([]byte, maxBytes+1), 0o600) },
		"name other files": func(path string) error { return os.WriteFile(path, []byte("deny_file: /dev/zero\n"), 0o600) },
		"upstream_proxy name ": func(path string) error {
			return os.WriteFile(path, []byte("upstream_proxy: http://p.example.com:3128\n"), 0o600)
		},
	} {
		dir := t.TempDir()
		if err := plant(filepath.Join(dir, Name)); err != nil {
			t.Fatal(err)
		}
		_, err := Find(Places{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--no-project") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGone says what to do about a working directory that is not there.
func TestGone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(Places{Dir: filepath.Join(dir, "missing")}); err == nil || !strings.HasSuffix(err.Error(), "make it first, or name another") {
		t.Errorf("one that is missing: %v", err)
	}
	gone := filepath.Join(dir, "gone")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	t.Setenv("PWD", "")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(Places{}); err == nil || !strings.HasSuffix(err.Error(), "it was removed: cd to one that is there") {
		t.Errorf("one that was removed: %v", err)
	}
}

package files

import "testing"

const (
	work = "/home/me/project/app"
	home = "/home/me"
)

func gateOf(t *testing.T, s Section, pl Place) *Gate {
	t.Helper()
	if pl.Workspace == "" {
		pl = Place{Workspace: work, Home: home, State: []string{"~/.claude", "~/.claude.json"}, Login: []string{"~/.claude/.credentials.json"}}
	}
	g, err := s.In(pl)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func rules(paths ...string) (out []Rule) {
	for _, p := range paths {
		out = append(out, Rule{Path: p, At: "test"})
	}
	return out
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name   string
		s      Section
		path   string
		want   Access
		reason Reason
	}{
		{"workspace", Section{}, work + "/main.go", ReadWrite, Workspace},
		{"workspace itself", Section{}, work, ReadWrite, Workspace},
		{"home", Section{}, home + "/notes.txt", ReadOnly, HomeDir},
		{"beside the workspace", Section{}, home + "/project/other/main.go", ReadOnly, HomeDir},
		{"a name that begins like the workspace", Section{}, work + "2/main.go", ReadOnly, HomeDir},
		{"system", Section{}, "/usr/bin/env", ReadOnly, System},
		{"preload", Section{}, "/etc/ld.so.preload", ReadOnly, System},
		{"tmp", Section{}, "/tmp/x", ReadWrite, Temporary},
		{"cache", Section{}, home + "/.cache/go-build/00", ReadWrite, State},
		{"agent state", Section{}, home + "/.claude/projects/x.jsonl", ReadWrite, State},

		{"ssh key", Section{}, home + "/.ssh/id_ed25519", Hidden, Credential},
		{"ssh config", Section{}, home + "/.ssh/config", ReadOnly, HomeDir},
		{"aws", Section{}, home + "/.aws/credentials", Hidden, Credential},
		{"npmrc", Section{}, home + "/.npmrc", Hidden, Credential},
		{"shadow", Section{}, "/etc/shadow", Hidden, Credential},
		{"launch's records", Section{}, home + "/.local/state/egressd/sandboxes/x", Hidden, Credential},
		{"a file that is called as a secret", Section{}, home + "/.ssh2", ReadOnly, HomeDir},

		{"bashrc", Section{}, home + "/.bashrc", ReadOnly, RunsLater},
		{"git hook", Section{}, work + "/.git/hooks/pre-commit", ReadOnly, RunsLater},
		{"git config", Section{}, work + "/.git/config", ReadOnly, RunsLater},
		{"git index", Section{}, work + "/.git/index", ReadWrite, Workspace},
		{"module's hook", Section{}, work + "/.git/modules/lib/hooks/post-checkout", ReadOnly, RunsLater},
		{"hook deep in the workspace", Section{}, work + "/vendor/x/.git/hooks/h", ReadOnly, RunsLater},
		{"vscode", Section{}, work + "/.vscode/tasks.json", ReadOnly, RunsLater},
		{"envrc in a part", Section{}, work + "/sub/.envrc", ReadOnly, RunsLater},
		{"agent settings in its state", Section{}, home + "/.claude/settings.json", ReadOnly, RunsLater},
		{"agent hooks in its state", Section{}, home + "/.claude/hooks/x", ReadOnly, RunsLater},

		{"named read", Section{Read: rules("~/.aws/config")}, home + "/.aws/config", ReadOnly, Named},
		{"named read opens no more", Section{Read: rules("~/.aws/config")}, home + "/.aws/credentials", Hidden, Credential},
		{"named read of a directory", Section{Read: rules("~/.ssh")}, home + "/.ssh/id_rsa", ReadOnly, Named},
		{"a wide read opens no secret", Section{Read: rules("~")}, home + "/.ssh/id_rsa", Hidden, Credential},
		{"a wide write opens nothing that runs later", Section{Write: rules(".")}, work + "/.git/hooks/x", ReadOnly, RunsLater},
		{"named write of what runs later", Section{Write: rules(".git/hooks")}, work + "/.git/hooks/x", ReadWrite, Named},
		{"named write outside", Section{Write: rules("/srv/out")}, "/srv/out/x", ReadWrite, Named},
		{"hide in the workspace", Section{Hide: rules("secrets")}, work + "/secrets/k", Hidden, Named},
		{"hide by pattern", Section{Hide: rules("**/.env")}, work + "/a/b/.env", Hidden, Named},
		{"hide beats write", Section{Hide: rules("x"), Write: rules("x")}, work + "/x", Hidden, Named},
		{"read beats write", Section{Read: rules("x"), Write: rules("x")}, work + "/x", ReadOnly, Named},
		{"home rw", Section{Home: HomeReadWrite}, home + "/notes.txt", ReadWrite, HomeDir},
		{"home rw, shell start", Section{Home: HomeReadWrite}, home + "/.bashrc", ReadOnly, RunsLater},
		{"home rw, key", Section{Home: HomeReadWrite}, home + "/.ssh/id_rsa", Hidden, Credential},
		{"home private", Section{Home: HomePrivate}, home + "/notes.txt", Hidden, HomeDir},
		{"home private, cache", Section{Home: HomePrivate}, home + "/.cache/x", Hidden, HomeDir},
		{"home private, workspace", Section{Home: HomePrivate}, work + "/x", ReadWrite, Workspace},
		{"home private, named", Section{Home: HomePrivate, Read: rules("~/.gitconfig")}, home + "/.gitconfig", ReadOnly, Named},

		{"home private and a part of it, key", Section{Home: HomePrivate, Write: rules("~")}, home + "/.ssh/id_rsa", Hidden, Credential},
		{"home private and a part of it, shell start", Section{Home: HomePrivate, Write: rules("~")}, home + "/.bashrc", ReadOnly, RunsLater},
		{"home private, shell start", Section{Home: HomePrivate}, home + "/.bashrc", Hidden, HomeDir},
		{"home private, agent", Section{Home: HomePrivate}, home + "/.claude/x", Hidden, HomeDir},
		{"hidden directory, what runs later", Section{Hide: rules("secrets")}, work + "/secrets/.envrc", Hidden, Named},
		{"hidden directory, what the list reads", Section{Hide: rules("~/.ssh")}, home + "/.ssh/config", Hidden, Named},
		{"hidden directory, what the list writes", Section{Hide: rules("~")}, home + "/.cache/x", Hidden, Named},
		{"hidden directory, what the agent writes", Section{Hide: rules("~")}, home + "/.claude/x", Hidden, Named},
		{"hidden directory, a part that is named", Section{Hide: rules("~/.ssh"), Read: rules("~/.ssh/config")}, home + "/.ssh/config", ReadOnly, Named},
		{"agent's own secret", Section{}, home + "/.claude/.credentials.json", ReadWrite, State},
		{"another agent's secret", Section{}, home + "/.codex/auth.json", Hidden, Credential},
		{"named agent's settings", Section{Write: rules("~/.claude/settings.json")}, home + "/.claude/settings.json", ReadWrite, Named},

		{"relative", Section{}, "etc/passwd", Hidden, NoPolicy},
		{"not clean", Section{}, work + "/../x", Hidden, NoPolicy},
	} {
		d := gateOf(t, tt.s, Place{}).Decide(tt.path)
		if d.Access != tt.want || d.Reason != tt.reason {
			t.Errorf("%s: %s is %s (%s, rule %+v), want %s (%s)", tt.name, tt.path, d.Access, d.Reason, d.Rule, tt.want, tt.reason)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name string
		pl   Place
		path string
		want Access
	}{
		{"started at home", Place{Workspace: home, Home: home}, home + "/x", ReadWrite},
		{"started at home, key", Place{Workspace: home, Home: home}, home + "/.ssh/id", Hidden},
		{"started at home, shell start", Place{Workspace: home, Home: home}, home + "/.bashrc", ReadOnly},
		{"started at the root", Place{Workspace: "/", Home: "/root"}, "/etc/ld.so.preload", ReadOnly},
		{"started at the root, home", Place{Workspace: "/", Home: "/root"}, "/root/x", ReadOnly},
		{"started in the editor's settings", Place{Workspace: home + "/.config/nvim", Home: home}, home + "/.config/nvim/init.lua", ReadWrite},
		{"no home", Place{Workspace: "/w"}, "/home/me/.ssh/id", ReadOnly},
		{"home is the root", Place{Workspace: "/w", Home: "/"}, "/.ssh/id", Hidden},
	} {
		if d := gateOf(t, Section{}, tt.pl).Decide(tt.path); d.Access != tt.want {
			t.Errorf("%s: %s is %s (%s), want %s", tt.name, tt.path, d.Access, d.Reason, tt.want)
		}
	}
	for _, pl := range []Place{{}, {Workspace: "w"}, {Workspace: "/w/"}, {Workspace: "/w", Home: "h"}} {
		if _, err := (Section{}).In(pl); err == nil {
			t.Errorf("%+v is accepted", pl)
		}
	}
}

// A directory may be called what would be a pattern in a rule.
func TestNamesLikePatterns(t *testing.T) {
	const odd = "/home/me/a[b]*"
	pl := Place{Workspace: odd, Home: "/home/me", State: []string{"/c[1]"}, Secret: []string{"/s?"}}
	g := gateOf(t, Section{Hide: rules("sub", `x\*`, "k*"), Write: rules(`/out\[1\]`)}, pl)
	for name, want := range map[string]Access{
		odd + "/f": ReadWrite, "/home/me/ab/f": ReadOnly, odd + "/sub/f": Hidden, odd + "/x*": Hidden, odd + "/xy": ReadWrite,
		odd + "/key": Hidden, "/out[1]/f": ReadWrite, "/out1/f": ReadOnly, "/c[1]/f": ReadWrite, "/c1/f": ReadOnly, "/s?": Hidden, "/sx": ReadOnly,
	} {
		if d := g.Decide(name); d.Access != want {
			t.Errorf("%s is %s (%+v), want %s", name, d.Access, d.Rule, want)
		}
	}
	for _, a := range g.Anchors() {
		if (a.Path == odd || a.Path == odd+"/sub" || a.Path == odd+"/x*") && a.Glob() {
			t.Errorf("%s is a pattern", a.Path)
		}
	}
}

// A link where programs may write opens nothing beyond it; one of the person's own
// is followed.
func TestPlantedLinks(t *testing.T) {
	links := map[string]string{
		work + "/build": home + "/.ssh", work + "/data": "/srv/data", work + "/in": work + "/src", home + "/proj": "/srv/proj", "/tmp/link": "/srv/tmp",
		"/srv/out/deep": "/etc", home + "/.cache/x/y": home + "/.bashrc",
	}
	pl := Place{Workspace: work, Home: home, Resolve: func(p string) string {
		if to, ok := links[p]; ok {
			return to
		}
		return p
	}}
	for _, tt := range []struct {
		s    Section
		path string // read-write or read-only, if good
		good bool
	}{
		{Section{Write: rules("build")}, "", false},
		{Section{Read: rules("build")}, "", false},
		{Section{Write: rules(work + "/build")}, "", false},
		{Section{Write: rules("data")}, "", false},
		{Section{Write: rules("~/.cache/x/y")}, "", false},
		{Section{Write: rules("/srv/out", "/srv/out/deep")}, "", false},
		{Section{Write: rules("/srv/o*", "/srv/out/deep")}, "", false},
		{Section{Read: rules("data")}, "/srv/data/x", true}, // it can be read anyway
		{Section{Write: rules("in")}, work + "/src/x", true},
		{Section{Write: rules("~/proj")}, "/srv/proj/x", true},
		{Section{Write: rules("/tmp/link")}, "/srv/tmp/x", true},
		{Section{Hide: rules("build")}, "", true},
	} {
		g, err := tt.s.In(pl)
		if (err == nil) != tt.good {
			t.Errorf("%+v: %v", tt.s, err)
		}
		if tt.path != "" && err == nil && g.Decide(tt.path).Reason != Named {
			t.Errorf("%+v: %s is %+v", tt.s, tt.path, g.Decide(tt.path))
		}
	}
	if _, err := (Section{Hide: rules("~/x")}).In(Place{Workspace: work}); err == nil {
		t.Error("a rule below a home directory that is not there is accepted")
	}
}

// A session's files are narrowed by the ceiling's, whatever it asks for.
func TestUnder(t *testing.T) {
	own := gateOf(t, Section{Write: rules("/srv", "~/.ssh"), Home: HomeReadWrite}, Place{})
	got := own.Under(gateOf(t, Section{Hide: rules("/srv/private")}, Place{}))
	for path, want := range map[string]Access{
		"/srv/x":               ReadOnly,
		"/srv/private/x":       Hidden,
		home + "/.ssh/id":      Hidden,
		home + "/notes":        ReadOnly,
		work + "/x":            ReadWrite,
		work + "/.git/hooks/x": ReadOnly,
	} {
		if d := got.Decide(path); d.Access != want {
			t.Errorf("%s is %s, want %s", path, d.Access, want)
		}
	}
	both := own.Under(gateOf(t, Section{Write: rules("/srv"), Hide: rules("/srv/a")}, Place{})).
		Under(gateOf(t, Section{Write: rules("/srv"), Hide: rules("/srv/b")}, Place{}))
	for path, want := range map[string]Access{"/srv/a": Hidden, "/srv/b": Hidden, "/srv/c": ReadWrite} {
		if d := both.Decide(path); d.Access != want {
			t.Errorf("under two ceilings %s is %s, want %s", path, d.Access, want)
		}
	}
	var none *Gate
	if none.Under(own) != nil || own.Under(nil) != nil || none.Decide("/x").Access != Hidden {
		t.Error("a nil gate shows something")
	}
}

// What keeps a project's secrets is visible here and not sent elsewhere, unless
// somebody names it.
func TestElsewhere(t *testing.T) {
	here := Place{Workspace: work, Home: home}
	there := here
	there.Elsewhere = true
	for _, name := range []string{".env", "sub/.env.local", ".env.test.local", "id_rsa", "a/b/server.pem", "tls/x.key", ".envrc", "sub/.ssh/config"} {
		if d := gateOf(t, Section{}, here).Decide(work + "/" + name); d.Access == Hidden {
			t.Errorf("%s is hidden here", name)
		}
		if d := gateOf(t, Section{}, there).Decide(work + "/" + name); d.Access != Hidden || d.Reason != Credential {
			t.Errorf("%s is %s there, %s", name, d.Access, d.Reason)
		}
		if d := gateOf(t, Section{Read: rules(name)}, there).Decide(work + "/" + name); d.Access != ReadOnly {
			t.Errorf("%s is %s, and was named", name, d.Access)
		}
		if d := gateOf(t, Section{Write: rules(".")}, there).Decide(work + "/" + name); d.Access != Hidden {
			t.Errorf("%s is %s, and only its directory was named", name, d.Access)
		}
	}
	for _, name := range []string{".env.example", ".env.test", "id_rsa.pub", "env", "key", "src/keys.go", ".env.d/x"} {
		if d := gateOf(t, Section{}, there).Decide(work + "/" + name); d.Access != ReadWrite {
			t.Errorf("%s is %s there", name, d.Access)
		}
	}
	if d := gateOf(t, Section{}, there).Decide("/etc/hosts"); d.Access != Hidden {
		t.Errorf("what is not in the workspace is %s there", d.Access)
	}
	if d := gateOf(t, Section{Read: rules("**/*.pem")}, there).Decide(work + "/a/b.pem"); d.Access != ReadOnly {
		t.Errorf("a pattern does not open it: %s", d.Access)
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{"~", "~/x", ".", "./x", "x/y", "/", "/x", "**/.env", "~/a*/b", "a/**/b", "~/.ssh/id_[re]*"} {
		if err := Check(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "~other/x", "../x", "a/../b", "/..", "a**/b", "a\x00b", "a\nb", "[", "a/[x"} {
		if Check(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
		if _, err := (Section{Read: []Rule{{Path: bad, At: "--read #1"}}}).In(Place{Workspace: work}); err == nil {
			t.Errorf("a section with %q is accepted", bad)
		}
	}
}

// Every line of the list is read: its kind is known, its path is valid.
func TestDefaultList(t *testing.T) {
	b := &builder{place: Place{Workspace: work, Home: home, Elsewhere: true}}
	b.builtIn()
	lines := 0
	for _, line := range splitLines(defaultText) {
		if line != "" && line[0] != '#' {
			lines++
		}
	}
	if len(b.out) != lines || lines < 100 {
		t.Errorf("%d rules from %d lines", len(b.out), lines)
	}
	seen := map[string]bool{}
	for _, a := range b.out {
		if err := Check(a.Rule.Path); err != nil {
			t.Errorf("%s: %v", a.Rule.Path, err)
		}
		if a.Reason == RunsLater {
			continue // it may also be a secret
		}
		if seen[a.Path] {
			t.Errorf("%s stands twice", a.Path)
		}
		seen[a.Path] = true
	}
}

func splitLines(s string) (out []string) {
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		out = append(out, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return out
}

func TestHomeWords(t *testing.T) {
	for _, h := range []Home{HomeReadOnly, HomeReadWrite, HomePrivate} {
		if got, err := ParseHome(h.String()); err != nil || got != h {
			t.Errorf("%s reads as %s, %v", h, got, err)
		}
	}
	for _, bad := range []string{"", "RW", "none"} {
		if _, err := ParseHome(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

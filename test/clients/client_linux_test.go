//go:build system

package clients

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// client is one program and what it should do: reach an allowed origin with
// and without proxy variables, and say so when the gate refuses.
type client struct {
	name  string
	needs []string                                             // programs
	setup func(t *testing.T, who person, home string) []string // makes files, reports more environment (NAME=VALUE)
	rules []string                                             // --allow
	env   []string                                             // NAME=VALUE, passed with --env
	argv  []string                                             // {home} stands for the home directory, {ca} for the CA's file
	want  string                                               // regular expression over stdout and stderr

	// denied is argv towards denied.test; nil: none. refusal is what the
	// client must say, a regular expression.
	denied  []string
	refusal string

	deaf        bool // does not look at proxy variables
	perhapsDeaf bool // depends on its version
	series      bool // its server lives as long as the test that runs it
}

// run puts the client through its three runs, for each person.
func (c client) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		if !c.series {
			t.Parallel()
		}
		asEach(t, func(t *testing.T, who person) {
			need(t, who, c.needs...)
			c.as(t, who)
		})
	})
}

func (c client) as(t *testing.T, who person) {
	home := who.home(t)
	var flags []string
	for _, r := range c.rules {
		flags = append(flags, "--allow", r)
	}
	vars := slices.Clone(c.env)
	if c.setup != nil {
		vars = append(vars, c.setup(t, who, home)...)
		who.own(t, home)
	}
	fill := strings.NewReplacer("{home}", home, "{ca}", env.world.ca.file)
	for _, v := range vars {
		flags = append(flags, "--env", fill.Replace(v))
	}
	filled := func(argv []string) []string {
		out := slices.Clone(argv)
		for i := range out {
			out[i] = fill.Replace(out[i])
		}
		return out
	}
	for _, captured := range []bool{false, true} {
		mode := map[bool]string{false: "proxy variables", true: "captured"}[captured]
		t.Run(mode, func(t *testing.T) {
			s := session{who: who, home: home, flags: flags, argv: filled(c.argv), captured: captured}
			c.checkAllowed(t, s, s.run(t))
		})
		if c.denied == nil {
			continue
		}
		t.Run("denied, "+mode, func(t *testing.T) {
			s := session{who: who, home: home, flags: flags, argv: filled(c.denied), captured: captured}
			checkDenied(t, s, s.run(t), c.refusal)
		})
	}
}

func (c client) checkAllowed(t *testing.T, s session, e ended) {
	t.Helper()
	if e.code != 0 || !regexp.MustCompile(c.want).MatchString(e.all()) {
		t.Errorf("%v\nexit code %d after %v, want 0 and /%s/\nstdout: %.3000s\nstderr: %.3000s", s.argv, e.code, e.took, c.want, e.stdout, e.stderr)
	}
	if s.captured || !c.perhapsDeaf {
		checkDoors(t, s, e, c.deaf)
	}
}

// checkDoors tells whether the client came the way the test meant it to.
func checkDoors(t *testing.T, s session, e ended, deaf bool) {
	t.Helper()
	transparent := e.doors["transparent"]
	explicit := e.doors["connect"] || e.doors["http"] || e.doors["socks5"] || e.doors["socks4"]
	if s.captured || deaf {
		if !transparent || explicit {
			t.Errorf("doors used %v, want transparent alone", e.doors)
		}
	} else if !explicit || transparent {
		t.Errorf("doors used %v, want the proxy alone", e.doors)
	}
}

func checkDenied(t *testing.T, s session, e ended, refusal string) {
	t.Helper()
	if e.code == 0 {
		t.Errorf("%v: exit code 0 towards a host that no rule names", s.argv)
	}
	if !regexp.MustCompile(refusal).MatchString(e.all()) {
		t.Errorf("%v\nexit code %d after %v, want words /%s/\nstdout: %.3000s\nstderr: %.3000s", s.argv, e.code, e.took, refusal, e.stdout, e.stderr)
	}
	checkBlocked(t, s, e)
}

// checkBlocked tells that the gate recorded a denial of denied.test and let
// nothing through to it.
func checkBlocked(t *testing.T, s session, e ended) {
	t.Helper()
	if !slices.ContainsFunc(e.blocked, func(b string) bool { return strings.HasPrefix(b, deniedHost+":") }) {
		t.Errorf("%v: the denial is not in the events: %v", s.argv, e.blocked)
	}
	if n := env.world.touched.Load(); n != 0 {
		t.Errorf("%v: %d connections or datagrams reached the canary", s.argv, n)
	}
}

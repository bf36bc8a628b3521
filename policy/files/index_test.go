package files

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
)

// plainly is Decide without the index: every anchor is tried, in order.
func plainly(g *Gate, name string) Decision {
	var best, written, later deepest
	for i := range g.anchors {
		a := &g.anchors[i]
		n := a.covers(name, split(name))
		switch {
		case n < 0:
			continue
		case a.Reason == RunsLater:
			later.take(a, int32(i), n)
			continue
		case a.order >= orderWritten:
			written.take(a, int32(i), n)
		}
		best.take(a, int32(i), n)
	}
	if best.Anchor == nil {
		return Decision{}
	}
	d := best.Decision
	if written.Anchor != nil && written.Access == Hidden && best.order < orderWritten {
		d = written.Decision
	}
	if later.beats(best) && d.Access > Hidden {
		d = later.Decision
	}
	return d
}

// The index finds what looking at every rule finds, for rules and names made of the
// same few words.
func TestIndex(t *testing.T) {
	words := []string{"a", "b", "*", "a*", "**", ".git", "hooks", ".claude", ".ssh", "config"}
	dice := rand.New(rand.NewPCG(1, 2))
	some := func(from []string) string {
		var out []string
		for range 1 + dice.IntN(4) {
			out = append(out, from[dice.IntN(len(from))])
		}
		return strings.Join(out, "/")
	}
	plain := []string{"a", "b", "ab", ".git", "hooks", ".claude", ".ssh", "config", "settings.json", "me"}
	for round := range 60 {
		var s Section
		for _, list := range []*[]Rule{&s.Write, &s.Read, &s.Hide} {
			for range dice.IntN(4) {
				base := []string{"", "~/", "/", "/home/"}[dice.IntN(4)]
				*list = append(*list, Rule{Path: base + some(words), At: fmt.Sprint(round)})
			}
		}
		s.Home = Home(dice.IntN(4))
		g, err := s.In(Place{Workspace: "/home/me/a", Home: "/home/me", State: []string{"~/.claude"}, Login: []string{"~/.claude/config"}})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			name := path.Join([]string{"/", "/home/me", "/home/me/a"}[dice.IntN(3)], some(plain))
			if got, want := g.Decide(name), plainly(g, name); got != want {
				t.Fatalf("%+v: %s is %+v, want %+v", s, name, got, want)
			}
		}
	}
}

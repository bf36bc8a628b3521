package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"egressd/policy/internal/grammar"
)

// TestListsLikeRules holds that rules in list files decide what the same rules
// decide one by one, and tell the same rule and place.
func TestListsLikeRules(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 2026))}
	tables, others := 0, 0
	for range 400 {
		texts := map[bool][]string{}
		docs := map[bool]*Document{false: {}, true: {}}
		for range g.IntN(12) {
			for _, deny := range []bool{false, true} {
				text := g.rule(deny)
				if p, err := grammar.Parse(text, deny); err != nil || !deny && p.Scope == grammar.Addr && grammar.Undialable(p.Prefix) != "" || deny && g.IntN(2) == 0 {
					continue
				}
				if g.IntN(8) == 0 {
					text = strings.ToUpper(text[:1]) + text[1:]
				}
				line := strings.Repeat(" ", g.IntN(3))
				pos := Pos{File: "dir/" + map[bool]string{false: "allow.txt", true: "deny.txt"}[deny], Line: len(texts[deny]) + 1, Column: len(line) + 1}
				e := Entry{text, pos}
				texts[deny] = append(texts[deny], line+text+g.pick("", " ", "\r", " # why", "#"))
				if deny {
					docs[deny].Deny = append(docs[deny].Deny, e)
				} else {
					docs[deny].Allow = append(docs[deny].Allow, e)
				}
				if g.IntN(6) == 0 {
					texts[deny] = append(texts[deny], g.pick("", "# a comment", "  "))
				}
			}
		}
		if len(docs[true].Deny) == 0 {
			docs[true].Deny = []Entry{{"z.test", Pos{"dir/deny.txt", len(texts[true]) + 1, 1}}}
			texts[true] = append(texts[true], "z.test")
		}
		want, err := Compile(docs[false], docs[true])
		if err != nil {
			continue // a generated rule that is none
		}
		got := mustFiles(t, nil, bothFiles, map[string]string{
			"dir/allow.txt": strings.Join(texts[false], "\n"), "dir/deny.txt": strings.Join(texts[true], "\n") + "\n",
		})
		for _, l := range slices.Concat(got.allow.lists, got.deny.lists) {
			others += len(l.table.Others())
			tables += l.table.Rules() - len(l.table.Others())
		}
		samePolicies(t, g, want, got)
	}
	if tables == 0 || others == 0 {
		t.Errorf("%d rules in tables, %d others: the generator misses them", tables, others)
	}
}

func samePolicies(t *testing.T, g generator, want, got *Policy) {
	t.Helper()
	for _, deny := range []bool{false, true} {
		a, b := spellRules(want, deny), spellRules(got, deny)
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("rules differ:\n%s", d)
		}
	}
	if d := cmp.Diff(want.Ports(), got.Ports()); d != "" {
		t.Fatalf("ports differ:\n%s", d)
	}
	if d := cmp.Diff(want.Intercepted(), got.Intercepted()); d != "" {
		t.Fatalf("intercepted hosts differ:\n%s", d)
	}
	for range 100 {
		r := g.request(t)
		if g.IntN(8) == 0 {
			r = Request{Host: r.Host, Addr: r.Addr}
		}
		w, h := want.Decide(r), got.Decide(r)
		if spellDecision(w) != spellDecision(h) {
			t.Fatalf("%v\n%+v:\none by one: %s\nlists: %s", spellRules(want, false), r, spellDecision(w), spellDecision(h))
		}
		if want.Spells(r.Host) != got.Spells(r.Host) {
			t.Fatalf("Spells(%s) differs", r.Host)
		}
	}
	if d := got.Diff(want); len(d.Added)+len(d.Removed) > 0 {
		t.Fatalf("the same rules differ: %+v", d)
	}
	if d := want.Diff(got); len(d.Added)+len(d.Removed) > 0 {
		t.Fatalf("the same rules differ: %+v", d)
	}
}

func spellRules(p *Policy, deny bool) (out []string) {
	for r := range p.Each(deny) {
		out = append(out, fmt.Sprint(r.Index, r.Deny, r.Text, r.Pos, r.Reach()))
	}
	return out
}

func spellDecision(d Decision) string {
	s := fmt.Sprint(d.Verdict, d.Reason, d.Needs, d.Audit)
	if d.Rule != nil {
		s += fmt.Sprint(d.Rule.Index, d.Rule.Deny, d.Rule.Text, d.Rule.Pos)
	}
	return s
}

// FuzzListFile holds that whatever a rules list says, its rules one by one say.
func FuzzListFile(f *testing.F) {
	f.Add("a.test\n*.b.test:22\n10.0.0.0/8\n", "x.b.test", uint16(22), false)
	f.Add("A.test.\n.b.test # c\n\nGET https://c.test/**\n", "a.test", uint16(443), true)
	f.Fuzz(func(t *testing.T, text, name string, port uint16, deny bool) {
		key, d := "allow_file: l\n", &Document{}
		if deny {
			key = "deny_file: {path: l, format: rules}\n"
		}
		got, err := withFiles(t, nil, key, map[string]string{"dir/l": text})
		for i, line := range strings.Split(strings.TrimPrefix(text, "\xef\xbb\xbf"), "\n") {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.Trim(line, " \t\r"); line == "" {
				continue
			}
			e := Entry{line, Pos{"dir/l", i + 1, 0}}
			if deny {
				d.Deny = append(d.Deny, e)
			} else {
				d.Allow = append(d.Allow, e)
			}
		}
		want, wantErr := Compile(d)
		if (err == nil) != (wantErr == nil) && !strings.Contains(fmt.Sprint(err), "holds no rule") {
			t.Fatalf("%q: %v, one by one: %v", text, err, wantErr)
		}
		h, hostErr := ParseHost(name)
		if err != nil || wantErr != nil || hostErr != nil {
			return
		}
		a, b := want.Decide(Request{Host: h, Port: port}), got.Decide(Request{Host: h, Port: port})
		if a.Verdict != b.Verdict || a.Reason != b.Reason || (a.Rule == nil) != (b.Rule == nil) || a.Rule != nil && (a.Rule.Index != b.Rule.Index || a.Rule.Text != b.Rule.Text || a.Rule.Pos.Line != b.Rule.Pos.Line) {
			t.Fatalf("%q about %s:%d: one by one %+v, in a list %+v", text, h, port, a, b)
		}
	})
}

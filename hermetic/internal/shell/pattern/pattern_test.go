package pattern

import (
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pat, s string
		o      Options
		want   bool
	}{
		{"abc", "abc", Options{}, true},
		{"a*c", "abbc", Options{}, true},
		{"a*c", "abb", Options{}, false},
		{"*", "", Options{}, true},
		{"?", "é", Options{}, true},
		{"?", "\xff", Options{}, true},
		{"??", "é", Options{}, false},
		{"[a-c]x", "bx", Options{}, true},
		{"[!a-c]x", "bx", Options{}, false},
		{"[^a]", "b", Options{}, true},
		{"[]a]", "]", Options{}, true},
		{"[a", "[a", Options{}, true}, // no bracket
		{"[[:digit:]]*", "7x", Options{}, true},
		{"[[:nope:]]", "n", Options{}, false},
		{`\*`, "*", Options{}, true},
		{`\*`, "x", Options{}, false},
		{"ABC", "abc", Options{Fold: true}, true},
		{"[A-C]", "b", Options{Fold: true}, true},
		{"@(a|b)c", "bc", Options{Ext: true}, true},
		{"@(a|b)c", "@(a|b)c", Options{}, true}, // not extended: text
		{"!(a)", "b", Options{Ext: true}, true},
		{"!(a)", "a", Options{Ext: true}, false},
		{"!(a)", "", Options{Ext: true}, true},
		{"+(ab)", "abab", Options{Ext: true}, true},
		{"+(ab)", "", Options{Ext: true}, false},
		{"*(ab|c)d", "abccabd", Options{Ext: true}, true},
		{"?(x)y", "y", Options{Ext: true}, true},
		{"*.!(txt)", "a.log", Options{Ext: true}, true},
		{"@(a|@(b|c))", "c", Options{Ext: true}, true},
	} {
		if got := Compile(tt.pat, tt.o).Match(tt.s); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pat, tt.s, got)
		}
	}
}

func TestEnds(t *testing.T) {
	p := Compile("a*b", Options{})
	if n := p.Prefix("aabxbc", false); n != 3 {
		t.Errorf("shortest prefix %d", n)
	}
	if n := p.Prefix("aabxbc", true); n != 5 {
		t.Errorf("longest prefix %d", n)
	}
	if n := p.Suffix("xabab", false); n != 3 {
		t.Errorf("shortest suffix %d", n)
	}
	if n := p.Suffix("xabab", true); n != 1 {
		t.Errorf("longest suffix %d", n)
	}
	if s, e, ok := p.Find("xxaybzb", 0); !ok || s != 2 || e != 7 {
		t.Errorf("found %d %d %v", s, e, ok)
	}
	if p.Prefix("x", true) != -1 || p.Suffix("x", true) != -1 {
		t.Error("what does not match is found")
	}
}

// TestWork bounds patterns on which other matchers backtrack for ever.
func TestWork(t *testing.T) {
	start := time.Now()
	s := strings.Repeat("a", 3000)
	for _, pat := range []string{"*a*a*a*a*a*a*a*a*b", "+(a|aa|+(a))b", "*(*(*(a)))b", "!(!(a*)b)c"} {
		if Compile(pat, Options{Ext: true}).Match(s) {
			t.Errorf("%q matches", pat)
		}
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	steps := 0
	Compile("+(a)b", Options{Ext: true, Step: func(n int) { steps += n }}).Match(s)
	if steps < 3000 {
		t.Errorf("%d steps are told", steps)
	}
}

func TestSpecial(t *testing.T) {
	for s, want := range map[string]bool{"a": false, "a*": true, `a\*`: false, "[": false, "[a]": true, "+(a)": true} {
		if got := Special(s, true); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
	if s := Unquote(Quote(`a*[b]\`)); s != `a*[b]\` {
		t.Errorf("%q", s)
	}
}

// The time of groups that repeat grows with the text, and all of it is counted.
func TestGroupsCount(t *testing.T) {
	text := strings.Repeat(" ", 100_000)
	for _, tt := range []struct {
		pat  string
		most int
	}{{"*( )*( )*( )x", 10_000_000}, {"+( )x", 3_000_000}, {"*(*( ))x", 10_000_000}} {
		steps := 0
		p := Compile(tt.pat, Options{Ext: true, Step: func(n int) { steps += n }})
		began := time.Now()
		if p.Match(text) || steps > tt.most || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %d steps in %v", tt.pat, steps, time.Since(began))
		}
	}
	steps := 0
	Compile("!(x)y", Options{Ext: true, Step: func(n int) { steps += n }}).Match(text[:2000])
	if steps < 500 {
		t.Errorf("!(x)y: only %d steps are counted", steps)
	}
}

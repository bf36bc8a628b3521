package awk

import (
	_ "embed"
	"strings"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
	"egressd/hermetic/limits"
)

//go:embed testdata/cases.json
var recorded []byte

func TestRecorded(t *testing.T) { gnutest.Filter(t, Commands(), "awk", recorded) }

func TestStreams(t *testing.T) {
	run := gnutest.In(t, Commands(), map[string]string{"in": "b 1\na 2\n"}, limits.Limits{})
	for _, c := range []struct{ prog, want string }{
		{`{print $1 | "cat"} END{close("cat"); print "end"}`, "b\na\ns\nend\n"},
		{`BEGIN{while(("date" | getline x) > 0) print "[" x "]"; print system("exit 3"), close("date"), close("none")}`, "[ran date]\n3 0 -1\n"},
		{`BEGIN{print "one" > "f"; print "two" >> "f"; close("f"); while((getline l < "f")>0) print l}`, "one\ntwo\n"},
		{`BEGIN{print (getline x < "nonexistent")}`, "-1\n"},
		{`{print FILENAME, FNR, v}`, "in 1 7\nin 2 7\n- 1 7\n"},
		{`BEGIN{print ENVIRON["FOO"], ARGC, ARGV[1]; exit}`, "bar 4 v=7\n"},
		{`BEGIN{print strftime("%F %T", systime()); exit}`, "2001-09-09 01:46:40\n"},
	} {
		if out, errs, _ := run("s\n", "awk", c.prog, "v=7", "in", "-"); out != c.want {
			t.Errorf("%s: %q, want %q (%s)", c.prog, out, c.want, errs)
		}
	}
}

func TestBounds(t *testing.T) {
	run := gnutest.In(t, Commands(), nil, limits.Limits{Steps: 1e6, Memory: 32 << 20, String: 1 << 20})
	for prog, want := range map[string]int{
		"BEGIN{while(1);}": 126, "BEGIN{for(;;)x=x \"a\"}": 126, "BEGIN{x=\"a\";while(1)x=x x}": statusFatal,
		"function f(){f()} BEGIN{f()}": statusFatal, "BEGIN{while(1)a[i++]}": statusFatal, "BEGIN{printf \"%999999999d\",1}": statusFatal,
		"BEGIN{$999999999=1}": statusFatal,
	} {
		if _, errs, status := run("", "awk", prog); status != want {
			t.Errorf("%s: status %d %.100q, want %d", prog, status, errs, want)
		}
	}
	if _, _, status := run("", "awk", "BEGIN{x="+strings.Repeat("(", 100000)); status != statusSyntax {
		t.Errorf("deep nesting: status %d", status)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"{print $1}", "/a/,/b/{x[$1]++}", "BEGIN{while((getline l < \"f\")>0) print l}", "function f(a){return a+1}{print f($2)}"} {
		f.Add(s)
	}
	run := gnutest.In(f, Commands(), nil, limits.Limits{Steps: 1e5, Memory: 16 << 20, String: 1 << 20})
	f.Fuzz(func(_ *testing.T, prog string) { run("a b\nc d\n", "awk", prog) })
}

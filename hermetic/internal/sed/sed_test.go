package sed

import (
	_ "embed"
	"strings"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
	"egressd/hermetic/limits"
)

//go:embed testdata/cases.json
var recorded []byte

func TestRecorded(t *testing.T) { gnutest.Filter(t, Commands(), "sed", recorded) }

func TestInPlace(t *testing.T) {
	files := map[string]string{"a": "one\ntwo\n", "b": "one\n", "sub/c": "one"}
	run := gnutest.In(t, Commands(), files, limits.Limits{})
	read := func(name string) string {
		out, _, _ := run("", "sed", "", name)
		return out
	}
	if _, errs, status := run("", "sed", "-i.bak", "1s/one/ONE/", "a", "b", "sub/c"); status != 0 || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	for name, want := range map[string]string{"a": "ONE\ntwo\n", "b": "ONE\n", "sub/c": "ONE", "a.bak": "one\ntwo\n", "sub/c.bak": "one"} {
		if got := read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("n", 255) // as long as a name can be
	run("x", "sed", "-n", "w "+long)
	if _, errs, status := run("", "sed", "-i", "s/x/y/", long); status != 0 || read(long) != "y" {
		t.Errorf("a long name: %d %q %q", status, errs, read(long))
	}
	if _, _, status := run("", "sed", "-i", "1q", "a"); status != 0 || read("a") != "ONE\ntwo\n" {
		t.Errorf("after q the rest of the file is lost: %q", read("a"))
	}
	if _, errs, status := run("", "sed", "-i", "p", "sub"); status != 4 || errs != "sed: couldn't edit sub: not a regular file\n" {
		t.Errorf("a directory: %d %q", status, errs)
	}
}

func TestBounds(t *testing.T) {
	run := gnutest.In(t, Commands(), nil, limits.Limits{Steps: 1e7, Memory: 8 << 20})
	for script, want := range map[string]int{":a;ba": 126, ":a;s/x/xx/g;ba": statusPanic, ":a;G;h;ba": statusPanic} {
		if _, errs, status := run("x\n", "sed", script); status != want {
			t.Errorf("%s: status %d %q, want %d", script, status, errs, want)
		}
	}
}

func TestShell(t *testing.T) {
	run := gnutest.In(t, Commands(), nil, limits.Limits{})
	if out, _, _ := run("a\n", "sed", "1e date"); out != "ran date\na\n" {
		t.Errorf("e: %q", out)
	}
	if out, _, _ := run("a\n", "sed", "s/a/date/e"); out != "ran date\n" {
		t.Errorf("s///e: %q", out)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"s/a/b/", "/x/,$!{p;b}", "a\\\nfoo", "y/abc/\\n\\t\\\\/", "1~2,+3d", "s,[,],x,g"} {
		f.Add(s)
	}
	run := gnutest.In(f, Commands(), nil, limits.Limits{Steps: 1e5})
	f.Fuzz(func(_ *testing.T, script string) { run("a\nb\n", "sed", "--sandbox", script) })
}

package grep

import (
	_ "embed"
	"strings"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
	"egressd/hermetic/limits"
)

//go:embed testdata/cases.json
var recorded []byte

func TestRecorded(t *testing.T) { gnutest.Filter(t, Commands(), "grep", recorded) }

func TestErrors(t *testing.T) {
	run := gnutest.In(t, Commands(), map[string]string{"a": "x\n", "d/b": "x\n"}, limits.Limits{Steps: 1e6})
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"grep x nonex", 2, "grep: nonex: No such file or directory\n"},
		{"grep -s x nonex", 2, ""},
		{"grep -q x a nonex", 0, ""},
		{"grep x d", 2, "grep: d: Is a directory\n"},
		{"grep [ a", 2, "grep: Unmatched [, [^, [:, [., or [=\n"},
		{"grep -E -F x a", 2, "grep: conflicting matchers specified\n"},
		{"grep -A y x a", 2, "grep: y: invalid context length argument\n"},
		{"grep --nope x", 2, "grep: unrecognized option '--nope'\nUsage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n"},
		{"grep -m 0 x a", 1, ""},
		{"egrep x|y a", 0, ""},
		{"fgrep . a", 1, ""},
	} {
		_, errs, status := run("", strings.Fields(c.args)...)
		if status != c.status || errs != c.stderr {
			t.Errorf("%s: %d %q, want %d %q", c.args, status, errs, c.status, c.stderr)
		}
	}
}

func TestStepsEndTheRun(t *testing.T) {
	run := gnutest.In(t, Commands(), nil, limits.Limits{Steps: 1e6})
	_, errs, status := run(strings.Repeat("a", 3000)+"xb\n", "grep", `^\(a*\)*\1\(a*\)*\2b`)
	if status != 126 || !strings.Contains(errs, "steps") {
		t.Errorf("status %d %q, want the limit of steps", status, errs)
	}
}

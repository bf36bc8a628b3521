//go:build linux

package hermetic

import (
	"strings"
	"testing"
	"time"

	"egressd/hermetic/limits"
	"egressd/sandbox"
)

// small are bounds that are met at once.
var small = limits.Limits{
	Commands: 20_000, Loops: 20_000, Steps: 2_000_000, Output: 1 << 20, Written: 1 << 20, Globs: 5000, String: 1 << 20, Array: 5000, Files: 40, Jobs: 40, Memory: 128 << 20,
}

// bombs are scripts that have no end, or too large a one: each ends with 126 and
// the bound's name.
var bombs = []struct{ bound, script string }{
	{"jobs", `:(){ :|:& };:`},
	{"jobs", `for ((;;)); do sleep 100 & done`},
	{"jobs", `while :; do : <(sleep 100); done`},
	{"commands", `while :; do :; done`},
	{"loops", `for ((;;)); do continue; done`},
	{"commands", `trap 'while :; do :; done' EXIT`},
	{"commands", `yes | while read x; do :; done`},
	{"calls", `f() { f; }; f`},
	{"calls", `f='eval "$f"'; eval "$f"`},
	{"calls", `echo '. ./s' >s; . ./s`},
	{"calls", `f() { echo $(f); }; f`},
	{"jobs", `f() { f | cat; }; f`},
	{"jobs", `f() { cat <(f); }; f`},
	{"calls", `trap 'kill -USR1 $$' USR1; kill -USR1 $$`},
	{"calls", `echo 'awk "BEGIN { system(\"sh ./s\") }"' >s; sh ./s`},
	{"calls", `export c='bash -c "$c"'; bash -c "$c"`},
	{"nesting", `x=$(seq 3000 | tr -dc '\n' | tr '\n' '('); eval "$x"`},
	{"globs", `echo {1..1000000000}`},
	{"globs", `echo {1..100}{1..100}{1..100}`},
	{"globs", `set -- a b; while :; do set -- "$@" "$@"; done`},
	{"string", `x=aaaaaaaaaa; while :; do x=$x$x; done`},
	{"string", `x=$(yes)`},
	{"string", `printf -v x %999999999s a`},
	{"array", `yes | mapfile a`},
	{"files", `while :; do exec {fd}</dev/null; done`},
	{"output", `yes`},
	{"output", `yes >&2`},
	{"written", `yes >f`},
	{"written", `truncate -s 999G f`},
	{"written", `head -c 1000000 /dev/zero | gzip >f; cat f f f f >g; gunzip -c g >h`},
	{"steps", `awk 'BEGIN { while (1); }'`},
	{"steps", `echo | sed ':a;ba'`},
	{"steps", `jq -n 'def f: f; f'`},
	{"steps", `x=$(head -c 50000 /dev/zero | tr '\0' a); echo ${x//*a*a*b/}`},
	{"steps", `x=$(head -c 5000 /dev/zero | tr '\0' a); echo "${x}b" | grep -E '^(a*)*(a*)*\1\2c?$'`},
}

func TestBombs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory leaves no limit to meet")
	}
	for _, tt := range bombs {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			o := run(t, &Backend{Limits: small}, sandbox.Spec{Script: tt.script, Timeout: 30 * time.Second})
			if o.code != exitLimit || o.failure != nil || !strings.Contains(o.note(), "--limit "+tt.bound+"=N") || len(o.notes) != 1 {
				t.Errorf("%s: %d %v %q after %v, want 126 and the bound %q", tt.script, o.code, o.failure, o.notes, time.Since(start), tt.bound)
			}
			if said := o.out + o.err; strings.Contains(said, "goroutine ") || len(said) > 2<<20 {
				t.Errorf("%s: %d bytes: %.200q", tt.script, len(said), said)
			}
		})
	}
}

// Scripts that are refused, or a command of which gives up, without an end of
// the run: the line after them runs.
func TestSurvived(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory leaves no limit to meet")
	}
	for _, script := range []string{
		"yes | sort", "yes | tac", "head -c 100G /dev/zero | tail -n 1", "yes | head -n -999999999",
		`awk 'function f(n) { return f(n+1) } BEGIN { f(0) }'`, `awk 'BEGIN { while (1) x = x "aaaaaaaaaaaa" x }'`, `awk 'BEGIN { $999999999 = 1 }'`,
		`jq -n 'def f: 1+f; f'`, `jq -n '"a"*1e9'`, `jq -n '[]|.[1e9]=1'`, `jq -n "$(yes 1+ | head -n 50000 | tr -d '\n')1"`,
		`printf 'a: &a [*a]\n' | yq .`, `a=b; b='a[a[a]]'; (echo $((a)))`, `grep -E 'a{1,255}{1,255}{1,255}' /dev/null`,
		`/usr/bin/printf %999999999d 1`, "dd if=/dev/zero bs=900G count=1", `printf 'x\n' | shuf -i 1-99999999999`,
		"mv / /tmp; rm -rf --no-preserve-root /; rm -rf . ..", "kill -9 99999; kill -9 2", "ulimit -n 100000",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			o := run(t, &Backend{Limits: limits.Limits{Memory: 128 << 20}}, sandbox.Spec{Script: "{ " + script + "; } >/dev/null 2>&1\necho after", Timeout: 30 * time.Second})
			if o.out != "after\n" || o.failure != nil || len(o.notes) != 0 {
				t.Errorf("%s: %+v", script, o)
			}
		})
	}
}

// What waits, or computes without a bound of its own, ends at the deadline, and
// what was printed before stays.
func TestDeadline(t *testing.T) {
	for _, script := range []string{
		"sleep infinity", "sleep 100 & wait", "trap '' TERM INT EXIT; sleep 100; sleep 100", "cat /dev/zero >/dev/null", "head -c 900G /dev/zero | wc -c",
		"read x </dev/zero", "seq 1 999999999999 | tail -n 1", "yes | xargs -P 5 true", "timeout 99 timeout 99 sleep 99", "while :; do sleep 0.01; done",
		"coproc cat; read x <&${COPROC[0]}", "tail -f /dev/null", "sha512sum /dev/zero", "yes | sed -n 'a x' >/dev/null", "tar cf /dev/null /dev/zero; cat | cat <(sleep 99)",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			const limit, late = time.Second, 5 * time.Second
			start := time.Now()
			o := run(t, &Backend{}, sandbox.Spec{Script: "echo before\n" + script + "\n", Timeout: limit})
			if took := time.Since(start); o.code != sandbox.ExitTimeout || !o.timedOut || o.failure != nil || !strings.HasPrefix(o.out, "before\n") || took > limit+late {
				t.Errorf("%s: %+v after %v", script, o, took)
			}
		})
	}
}

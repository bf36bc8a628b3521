package process

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"egressd/sandbox"
)

// TestForkBomb asks for more processes than there may be.
func TestForkBomb(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    *Backend
		n    int64
		ok   bool
	}{
		{"fewest", &Backend{Limits: Limits{Pids: 40}}, 100, false},
		{"few", &Backend{Limits: Limits{Pids: 60}}, 600, false},
		{"more than few", &Backend{Limits: Limits{Pids: 2000}}, 600, true},
		{"the default", &Backend{}, DefaultPids() + 400, false},
		{"more than the default", &Backend{Limits: Limits{Pids: 2 * (DefaultPids() + 400)}}, DefaultPids() + 400, true},
	} {
		if tt.name == "the default" && !LimitsHere().Pids {
			t.Logf("nothing counts the processes of this user here: the default does not hold")
			continue
		}
		if ok, out := attack(t, tt.b, sandbox.Spec{}, "fork-bomb", strconv.FormatInt(tt.n, 10)); ok != tt.ok {
			t.Errorf("%s: %d processes: %v: %s", tt.name, tt.n, ok, out)
		}
	}
}

// TestFileLimits writes more, and opens more, than there may be.
func TestFileLimits(t *testing.T) {
	dir := t.TempDir()
	fill := "head -c 3145728 /dev/zero >big; wc -c <big"
	private := "for i in 1 2 3; do head -c 921600 /dev/zero >/tmp/f$i; done; cat /tmp/f? | wc -c"
	open := "for i in 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\"; done; ulimit -n; ulimit -Hn"
	for _, tt := range []struct {
		name, script string
		l            Limits
		want         string
	}{
		{"a large file", fill, Limits{Disk: 1 << 20}, "1048576\n"},
		{"a large file, no bound", fill, Limits{}, "3145728\n"},
		{"large together", private, Limits{Disk: 2 << 20}, ""},
		{"large together, no bound", private, Limits{}, strconv.Itoa(3*900<<10) + "\n"},
		{"descriptors", open, Limits{Files: 40}, "40\n40\n"},
	} {
		res := run(t, &Backend{Limits: tt.l}, sandbox.Spec{Argv: []string{"/bin/sh", "-c", tt.script}, Dir: dir})
		out := res.out[strings.LastIndex(strings.TrimSuffix(res.out, "\n"), "\n")+1:]
		if tt.name == "descriptors" {
			out = res.out
		}
		if tt.want != "" && out != tt.want || tt.want == "" && out == strconv.Itoa(3*900<<10)+"\n" {
			t.Errorf("%s: %q", tt.name, res.out)
		}
	}
}

// TestLimitsThatCannotBeKept asks for what this machine cannot do, if there is such
// a thing: nothing runs then, and the error says what to do.
func TestLimitsThatCannotBeKept(t *testing.T) {
	whyNot := LimitsHere().WhyNot
	for _, l := range []Limits{{Memory: 1 << 30}, {CPU: 500}, {Files: 1 << 22}} {
		if whyNot == nil && l.Files == 0 {
			continue // they can be kept: see TestControlGroup
		}
		res := sh(t, &Backend{Limits: l}, "echo ran")
		var lacks *sandbox.CapabilityError
		if !errors.As(res.err, &lacks) || lacks.Fix == "" || !strings.Contains(lacks.What, "--limit "+l.String()) || strings.Contains(res.out, "ran") {
			t.Errorf("%s: %v: %s", l, res.err, res.out)
		}
	}
}

// TestControlGroup runs into each limit that a control group keeps.
func TestControlGroup(t *testing.T) {
	if whyNot := LimitsHere().WhyNot; whyNot != nil {
		t.Skipf("no control group can be made here: %v", whyNot)
	}
	bomb := "i=0; while [ $i -lt 300 ]; do sleep 5 & i=$((i+1)); done"
	hog := "head -c 209715200 /dev/zero | tail -c 157286400 >/dev/null; echo hog: $?"
	for _, tt := range []struct {
		name, script string
		l            Limits
		met          string
	}{
		{"processes", bomb, Limits{Pids: 100}, "[pids]"},
		{"memory", hog, Limits{Memory: 64 << 20}, "[memory]"},
		{"files in memory", "head -c 209715200 /dev/zero >/tmp/f", Limits{Memory: 64 << 20}, "[memory]"},
		{"no limit is met", hog + "; " + bomb, Limits{Memory: 1 << 30, Pids: 1000, CPU: 900}, "[]"},
	} {
		res := sh(t, &Backend{Limits: tt.l}, tt.script)
		if got := fmt.Sprint(res.Met); got != tt.met {
			t.Errorf("%s: met %s, want %s: %s", tt.name, got, tt.met, res.out)
		}
	}
	// What is inside cannot leave its group.
	leave := `for d in /sys/fs/cgroup /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup) /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/..; do
		echo $$ >$d/cgroup.procs && echo left; echo max >$d/pids.max && echo unbound; done`
	if res := sh(t, &Backend{Limits: Limits{Pids: 100}}, leave); strings.Contains(res.out, "left") || strings.Contains(res.out, "unbound") {
		t.Errorf("out of the group: %s", res.out)
	}
	if LimitsHere().WhyNot != nil {
		t.Error("afterwards there is no room for a group")
	}
}

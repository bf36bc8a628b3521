package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/test/e2e/job"
)

// TestExitCodes: the child's own, and the launcher's words for its own failures.
func TestExitCodes(t *testing.T) {
	needWorld(t)
	rows := []struct {
		name  string
		flags []string
		argv  []string
		code  int
	}{
		{"success", nil, []string{"/bin/true"}, 0},
		{"failure", nil, []string{"/bin/false"}, 1},
		{"a code of its own", nil, []string{"sh", "-c", "exit 42"}, 42},
		{"killed by SIGKILL", nil, []string{"sh", "-c", "kill -9 $$"}, 137},
		{"killed by SIGTERM", nil, []string{"sh", "-c", "kill -15 $$"}, 143},
		{"killed by SIGSEGV", nil, []string{"sh", "-c", "kill -11 $$"}, 139},
		{"not there", nil, []string{"/nonexistent/program"}, 127},
		{"not in PATH", nil, []string{"no-such-program-anywhere"}, 127},
		{"not executable", nil, []string{"/etc/passwd"}, 126},
		{"a directory", nil, []string{"/"}, 126},
		{"too long", []string{"--timeout", "1s"}, []string{"sleep", "30"}, 124},
		{"too long, ignoring SIGTERM", []string{"--timeout", "1s"}, []string{"sh", "-c", "trap '' TERM; sleep 30; sleep 30"}, 124},
		{"a background child does not keep it", nil, []string{"sh", "-c", "sleep 30 & exit 3"}, 3},
		{"an unknown flag", []string{"--no-such-flag"}, []string{"/bin/true"}, 2},
		{"a bad rule", []string{"--allow", "a*b.com"}, []string{"/bin/true"}, 2},
		{"a missing policy file", []string{"--policy", "/nonexistent.yaml"}, []string{"/bin/true"}, 2},
		{"an unknown preset", []string{"--preset", "no-such-preset"}, []string{"/bin/true"}, 2},
	}
	asEach(t, func(t *testing.T, who person) {
		for _, r := range rows {
			start := time.Now()
			e := session{who: who, flags: r.flags, argv: r.argv}.run(t)
			if e.code != r.code && !(r.code == 2 && e.code == 125) {
				t.Errorf("%s: exit code %d, want %d\n%s", r.name, e.code, r.code, e.stderr)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("%s: took %s", r.name, took)
			}
		}
	})
}

// TestInside looks at the walls from inside.
func TestInside(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		e := session{who: who, flags: []string{"--allow", exact}, jobs: []job.Job{{ID: "s", Op: "status"}}}.run(t)
		have := strings.Join(e.results["s"].Answers, "\n")
		for _, want := range []string{"NoNewPrivs: 1", "Seccomp: 2", "CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000", "CapInh: 0000000000000000"} {
			if !strings.Contains(have, want) {
				t.Errorf("inside, /proc/self/status lacks %q:\n%s", want, have)
			}
		}
	})
}

// TestKillAll: SIGKILL to everything that can be seen ends the sandbox, and
// nothing else.
func TestKillAll(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		bystander := startBystander(t, who)
		in, err := json.Marshal(job.Job{ID: "k", Op: "kill.all"})
		if err != nil {
			t.Fatal(err)
		}
		e := session{who: who, argv: []string{env.probe, "one"}, stdin: string(in)}.run(t)
		if e.code != 137 && e.code != 0 {
			t.Errorf("exit code %d: %s", e.code, e.stderr)
		}
		if !bystander.alive() {
			t.Error("a process outside was killed from inside")
		}
		if len(e.events) == 0 || e.events[len(e.events)-1]["type"] != "run.completed" {
			t.Errorf("the events do not end in run.completed: %s", e.eventsText)
		}
	})
}

// TestLauncherDies: whatever ends the launcher ends everything inside.
func TestLauncherDies(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		mark := token("orphan", 1)
		p := startLaunch(t, who, env.probe, "linger", mark, "")
		p.waitFor(t, mark)
		p.kill(t)
		deadline := time.NewTimer(5 * time.Second)
		defer deadline.Stop()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for running(t, mark) > 0 {
			select {
			case <-deadline.C:
				t.Fatalf("%d processes outlived a killed launcher", running(t, mark))
			case <-tick.C:
			}
		}
	})
}

// TestLogInjection sends what would forge a line, a field or a terminal
// sequence if anything wrote it down as it came.
func TestLogInjection(t *testing.T) {
	needWorld(t)
	checkLogInjection(t, launchGate{})
}

func checkLogInjection(t *testing.T, at gate) {
	t.Helper()
	forged := `{"type":"network.connected","decision":"allowed","host":"forged.example.org"}`
	asEachOf(t, at.people(), func(t *testing.T, who person) {
		evil := []string{"evil\n" + forged + "\n.example.org", "evil\r\n" + forged, "evil\",\"decision\":\"allowed", "\x1b]0;owned\x07.example.org", "\x1b[2J", "\u202eevil", "\xff\xfe\xfd", "evil\u2028" + forged, "\x00" + forged}
		s := session{who: who, flags: []string{"--allow", exact}}
		for i, text := range evil {
			id := func(op string) string { return fmt.Sprint(op, i) }
			s.jobs = append(s.jobs,
				job.Job{ID: id("c"), Op: "door.connect", Raw: []byte("CONNECT " + text + ":443 HTTP/1.1\r\nHost: x\r\n\r\n")},
				job.Job{ID: id("h"), Op: "door.http", Raw: []byte("GET http://evil.example.org/" + text + " HTTP/1.1\r\nHost: evil.example.org\r\nUser-Agent: " + text + "\r\n\r\n")},
				job.Job{ID: id("m"), Op: "door.http", Raw: []byte("GET http://" + exact + "/" + text + " HTTP/1.1\r\nHost: " + text + "\r\n\r\n")},
				job.Job{ID: id("s"), Op: "door.socks5", Host: text[:min(len(text), 255)], Port: 443},
				job.Job{ID: id("d"), Op: "door.dns", Host: text[:min(len(text), 60)] + ".example.org"},
				job.Job{ID: id("n"), Op: "door.connect", Host: exact, Port: 443, Payload: helloFor(text)},
			)
		}
		e := at.run(t, s)
		for _, ev := range e.events {
			if ev["host"] == "forged.example.org" {
				t.Errorf("a forged event: %v", ev)
			}
		}
		for i, line := range strings.Split(strings.TrimSuffix(e.eventsText, "\n"), "\n") {
			var ev struct{ Seq uint64 }
			if err := json.Unmarshal([]byte(line), &ev); err == nil && ev.Seq != uint64(i+1) {
				t.Errorf("line %d has seq %d: a line was lost or forged", i+1, ev.Seq)
			}
			if i := strings.IndexFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\u202e' || r == '\u2028' }); i >= 0 {
				t.Errorf("line holds a raw control character at %d: %q", i, line)
			}
		}
		if strings.ContainsAny(e.stderr, "\x1b\x07\x00") {
			t.Errorf("the gate's messages hold terminal sequences: %q", e.stderr)
		}
		if n := e.blocked(nil); n < len(evil)*4 {
			t.Errorf("%d attempts, %d blocked events", len(s.jobs), n)
		}
	})
}

// TestRebinding: a name that resolves to a public address first and to
// loopback later never gets a connection to the second.
func TestRebinding(t *testing.T) {
	needWorld(t)
	checkRebinding(t, launchGate{})
}

func checkRebinding(t *testing.T, at gate) {
	t.Helper()
	asEachOf(t, at.people(), func(t *testing.T, who person) {
		name := "flip." + token("r", who.uid) + ".example.com"
		s := session{who: who, flags: []string{"--allow", name + ":*"}}
		for i := range 12 {
			op := []string{"door.connect", "door.socks5", "door.direct"}[i%3]
			s.jobs = append(s.jobs, job.Job{ID: fmt.Sprint(i), Op: op, Host: name, Port: 8080, Payload: raw("PING\n")})
		}
		before := at.watch()
		at.run(t, s)
		for _, v := range before.end(t).visits {
			if v.Addr.Addr().IsLoopback() {
				t.Errorf("a rebound name was dialled: %+v", v)
			}
		}
	})
}

// TestLeavesNothing: no file, mount or namespace of a run is left.
func TestLeavesNothing(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		var e ended
		var left []string
		// Other tests mount and make files at the same time: what a run leaves
		// behind, every run leaves behind.
		for range 5 {
			before := leftovers(t)
			e = session{who: who, flags: []string{"--allow", exact}, argv: []string{"sh", "-c", "echo x > /tmp/inside; exit 0"}}.run(t)
			if e.code != 0 {
				t.Fatalf("exit code %d: %s", e.code, e.stderr)
			}
			left = nil
			for path := range leftovers(t) {
				if !before[path] {
					left = append(left, path)
				}
			}
			if len(left) == 0 {
				break
			}
		}
		for _, path := range left {
			t.Errorf("left behind: %s", path)
		}
		names, err := os.ReadDir(e.home)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if n.Name() != "events.jsonl" && n.Name() != ".local" {
				t.Errorf("left in the home directory: %s", n.Name())
			}
		}
		// The directory of launch's records is made before a program could plant one. It
		// holds the record of each run, for launch logs, and nothing else.
		dir := filepath.Join(e.home, ".local", "state", "egressd")
		records, err := filepath.Glob(filepath.Join(e.home, ".local", "*", "*", "*"))
		if err != nil || !isDirectory(dir) || !slices.Equal(records, []string{filepath.Join(dir, "runs")}) {
			t.Errorf("left in %s: %v", dir, records)
		}
		kept, err := os.ReadDir(filepath.Join(dir, "runs"))
		if err != nil || len(kept) != 2 {
			t.Errorf("the record of one run: %v, %v", kept, err)
		}
	})
}

// leftovers lists temporary files and mounts.
func leftovers(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		names, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			if strings.Contains(strings.ToLower(n.Name()), "egress") || strings.Contains(n.Name(), "launch") || n.Name() == "inside" {
				all[filepath.Join(dir, n.Name())] = true
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		all["mount "+line] = true
	}
	return all
}

func isDirectory(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"egressd/test/e2e/job"
)

const (
	sessionTimeout = 120 * time.Second
	throwAwayUID   = 64999 // no entry in /etc/passwd, owns nothing
)

// person is somebody who runs launch.
type person struct {
	name string
	uid  int
	cred *syscall.Credential // nil: as this process
	bare bool                // drop the ambient capabilities of the test's user namespace first
}

// people lists who runs the attacks: root and an ordinary user, where this
// process may be both.
func people() []person {
	if os.Geteuid() != 0 {
		return []person{{name: "user", uid: os.Geteuid(), bare: true}}
	}
	return []person{
		{name: "root", uid: 0},
		{name: "user", uid: throwAwayUID, cred: &syscall.Credential{Uid: throwAwayUID, Gid: throwAwayUID}},
	}
}

// asEach runs f once for each person.
func asEach(t *testing.T, f func(t *testing.T, who person)) {
	t.Helper()
	asEachOf(t, people(), f)
}

func asEachOf(t *testing.T, people []person, f func(t *testing.T, who person)) {
	t.Helper()
	for _, p := range people {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

// home makes a directory that belongs to the person and is not hidden inside.
func (p person) home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(env.base, "h-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the base directory goes at the end anyway
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, p.uid, p.uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// session is one run of launch, or of the probe alone.
type session struct {
	who   person
	flags []string // of launch, before --
	argv  []string // what launch runs; nil: the probe with jobs
	jobs  []job.Job
	stdin string
	env   []string // more than PATH and HOME
	plain bool     // without launch: the positive control
	in    *pod     // where it runs; nil: in the world
	files []*os.File
}

// ended is how a session went.
type ended struct {
	code           int
	stdout, stderr string
	results        map[string]job.Result
	events         []map[string]any
	eventsText     string
	home           string
}

// run executes s and fails the test when the probe's results cannot be read.
func (s session) run(t *testing.T) ended {
	t.Helper()
	e := s.start(t)
	if s.argv != nil {
		return e
	}
	var list []job.Result
	if err := json.Unmarshal([]byte(e.stdout), &list); err != nil {
		t.Fatalf("the probe gave no results (exit code %d): %v\nstdout: %.500s\nstderr: %.3000s", e.code, err, e.stdout, e.stderr)
	}
	e.results = map[string]job.Result{}
	for _, r := range list {
		e.results[r.ID] = r
	}
	return e
}

var portsGiven atomic.Int32

// withPorts gives every connection to a door a port of its own, below those that the
// kernel gives out: events name the port, and that of a connection that is over may be
// given out again. Of two captured connections from one port, to different addresses,
// the kernel would even change one.
func withPorts(jobs []job.Job) []job.Job {
	for i, j := range jobs {
		if j.From == 0 && slices.Contains(slices.Collect(maps.Values(doorOps)), j.Op) {
			jobs[i].From = 10000 + int(portsGiven.Add(1))%20000
		}
	}
	return jobs
}

// start executes s to its end.
func (s session) start(t *testing.T) ended {
	t.Helper()
	home := s.who.home(t)
	eventsFile := filepath.Join(home, "events.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), sessionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "x")
	cmd.Args = s.command(eventsFile)
	path, err := exec.LookPath(cmd.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Err = path, nil
	cmd.Dir = home
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}, s.env...)
	cmd.Stdin = strings.NewReader(s.stdin)
	if s.argv == nil {
		in, err := json.Marshal(withPorts(s.jobs))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = bytes.NewReader(in)
	}
	cmd.ExtraFiles = s.files
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.who.cred, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if s.in != nil {
		s.in.do(func() { err = cmd.Start() })
	} else {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	e := ended{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), home: home}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\nstderr: %s", cmd.Args, err, e.stderr)
	}
	e.events, e.eventsText = readEvents(t, eventsFile)
	return e
}

func (s session) command(eventsFile string) []string {
	argv := s.argv
	if argv == nil {
		argv = []string{env.probe, "run"}
	}
	if !s.plain {
		launch := []string{env.launch}
		launch = append(launch, s.flags...)
		launch = append(launch, "--events", eventsFile, "--dns-upstream", upstreamDNS, "--no-summary", "--")
		argv = append(launch, argv...)
	}
	if s.who.bare {
		argv = append([]string{env.probe, "bare", "--"}, argv...)
	}
	return argv
}

// readEvents reads the audit trail; a line that is not one JSON object is a
// failure of its own.
func readEvents(t *testing.T, path string) ([]map[string]any, string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	var events []map[string]any
	for line := range strings.Lines(string(data)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("the events hold a line that is not JSON: %q: %v", line, err)
			continue
		}
		events = append(events, e)
	}
	return events, string(data)
}

// blocked counts events with decision blocked that match.
func (e ended) blocked(match func(map[string]any) bool) int {
	n := 0
	for _, ev := range e.events {
		if ev["decision"] == "blocked" && (match == nil || match(ev)) {
			n++
		}
	}
	return n
}

// decision finds the decision about the flow of a row that the client at local
// opened. An event of that door that names the row's host goes first, one with the
// row's reason before the others, then one that names the host.
func (e ended) decision(local string, r row, door rune) map[string]any {
	host := strings.ToLower(strings.TrimSuffix(r.host, "."))
	word := strings.TrimPrefix(doorOps[door], "door.")
	if door == 'd' {
		word = "transparent"
	}
	var exact, found, elsewhere map[string]any
	for _, ev := range e.events {
		if ev["type"] != "network.connected" || ev["client"] != local {
			continue
		}
		switch named := ev["host"] == host && ev["port"] == float64(r.port); {
		case named && ev["door"] == word:
			if exact == nil || exact["reason"] != r.reason {
				exact = ev
			}
		case named && elsewhere == nil: // two doors may have seen one port of clients
			elsewhere = ev
		case found == nil:
			found = ev
		}
	}
	switch {
	case exact != nil:
		return exact
	case elsewhere != nil:
		return elsewhere
	}
	return found
}

// about lists the events' lines that name host.
func (e ended) about(host string) string {
	var lines strings.Builder
	for line := range strings.Lines(e.eventsText) {
		if strings.Contains(line, `"host":"`+host) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

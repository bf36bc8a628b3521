package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// control says what the same attempt does outside the sandbox: an attempt that
// works nowhere proves nothing.
type control int

const (
	works   control = iota // outside it reaches the canary, or the kernel carries it out
	asRoot                 // works outside for root, and for nobody else
	maybe                  // depends on the machine: a protocol the kernel may not have, a call it may refuse to all
	inside                 // has no meaning outside: it is about the sandbox itself
	leaking                // works outside only in that packets are seen: nobody answers
)

// escape is one attempt and what must not come of it.
type escape struct {
	name    string
	job     job.Job
	control control
	// event is what the engine must have written down when it can see the
	// attempt: a blocked decision in whose line all of these words stand.
	event []string
	// done is allowed to succeed inside: the call itself is harmless there, and
	// only what arrives outside counts.
	done bool
}

// escapePolicy allows one host, so that the tests also show that the way out
// that is meant to be open was.
var escapePolicy = []string{"--allow", "allowed.example.com"}

// TestEscapes runs every attempt outside first, where it must work, and then
// inside, where nothing may arrive at any canary.
func TestEscapes(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		c := plantCanaries(t, who)
		rows := escapes(c)
		t.Logf("%d attempts", len(rows))
		if len(rows) < 130 {
			t.Errorf("%d attempts are fewer than the 130 promised", len(rows))
		}
		checkControls(t, who, c, rows)
		checkInside(t, who, c, rows)
	})
}

func escapeJobs(rows []escape, prefix string) []job.Job {
	var jobs []job.Job
	for i, r := range rows {
		j := r.job
		j.ID = fmt.Sprint(i)
		if j.Token == "" {
			j.Token = token(prefix, i)
		}
		if !strings.HasPrefix(j.Op, "door.") {
			j.Via = strings.ReplaceAll(j.Via, "{token}", j.Token)
		}
		j.Host = strings.ReplaceAll(j.Host, "{token}", j.Token)
		j.Payload.Path = strings.ReplaceAll(j.Payload.Path, "{token}", j.Token)
		jobs = append(jobs, j)
	}
	return jobs
}

// token is what an attempt tries to get out: no other run has the same.
func token(prefix string, i int) string { return fmt.Sprintf("%s%dx%03dx", prefix, os.Getpid(), i) }

func checkControls(t *testing.T, who person, c canaries, rows []escape) {
	t.Helper()
	var outside []escape
	for _, r := range rows {
		if r.control != inside && !(r.control == asRoot && who.uid != 0) {
			outside = append(outside, r)
		}
	}
	before := env.world.watch()
	s := session{who: who, plain: true, jobs: escapeJobs(outside, "outside"), env: c.env}
	e := s.run(t)
	seen := before.end(t)
	stopLingering(t, "outside")
	for i, r := range outside {
		res := e.results[fmt.Sprint(i)]
		switch {
		case res.Reached || res.Done:
		case r.control == leaking && seen.holds(token("outside", i)):
		case r.control == maybe:
			t.Logf("control of %q: not possible on this machine: %s", r.name, res.Err)
		default:
			t.Errorf("control of %q: outside it reached nothing, so its failure inside would prove nothing: %+v", r.name, res)
		}
	}
}

// holds reports whether any packet carried the token.
func (s sightings) holds(tok string) bool {
	for _, p := range s.all {
		if strings.Contains(p.Payload, tok) {
			return true
		}
	}
	for _, q := range s.questions {
		if strings.Contains(q, strings.ToLower(tok)) {
			return true
		}
	}
	return false
}

func checkInside(t *testing.T, who person, c canaries, rows []escape) {
	t.Helper()
	c.reset()
	before := env.world.watch()
	s := session{who: who, flags: append([]string{"--policy", c.policy}, escapePolicy...), jobs: escapeJobs(rows, "inside"), env: c.env, files: c.files}
	s.jobs = append(s.jobs, job.Job{ID: "open", Op: "door.direct", Host: "allowed.example.com", Port: 443, Payload: tlsFor("allowed.example.com")})
	e := s.run(t)
	seen := before.end(t)
	if n := stopLingering(t, "inside"); n > 0 {
		t.Errorf("%d processes outlived launch", n)
	}
	if !e.results["open"].Reached {
		t.Errorf("the one way that is open was not: %+v", e.results["open"])
	}
	for i, r := range rows {
		res := e.results[fmt.Sprint(i)]
		if res.Reached {
			t.Errorf("%s: REACHED a canary: %+v", r.name, res)
		}
		if res.Done && !r.done {
			t.Errorf("%s: was carried out inside: %+v", r.name, res)
		}
		if strings.HasPrefix(res.Err, "unknown attempt") {
			t.Errorf("%s: %s", r.name, res.Err)
		}
		if seen.holds(token("inside", i)) {
			t.Errorf("%s: its bytes were seen outside", r.name)
		}
		if r.event != nil && e.blocked(eventHolds(r.event, fmt.Sprint(i), res)) == 0 {
			t.Errorf("%s: the engine sees it, and no blocked event holds %q (probe: %+v)", r.name, r.event, res)
		}
	}
	allowed := publicAddr("allowed.example.com")
	for _, p := range seen.packets {
		if p.Dst.Addr() != allowed && p.Src.Addr() != allowed {
			t.Errorf("a packet left the sandbox: %s", p)
		}
	}
	for _, q := range seen.questions {
		if name, _, _ := strings.Cut(q, " "); name != "allowed.example.com" {
			t.Errorf("a DNS question left the sandbox: %s", q)
		}
	}
	if got := c.heard(); len(got) > 0 {
		t.Errorf("unix sockets outside heard %q", got)
	}
	c.checkFiles(t)
	if e.code != 0 {
		t.Errorf("launch exited with %d: %.1000s", e.code, e.stderr)
	}
}

// eventHolds matches an event whose line has all words; {token} is this
// attempt's own.
func eventHolds(words []string, id string, _ job.Result) func(map[string]any) bool {
	return func(ev map[string]any) bool {
		line := strings.ToLower(fmt.Sprint(ev))
		for _, w := range words {
			var n int
			_, _ = fmt.Sscan(id, &n) // ids are made by Sprint
			w = strings.ToLower(strings.ReplaceAll(w, "{token}", token("inside", n)))
			if !strings.Contains(line, w) {
				return false
			}
		}
		return true
	}
}

// stopLingering ends the processes that the attempts of this run left behind
// and reports how many there were.
func stopLingering(t *testing.T, prefix string) int {
	t.Helper()
	mark := fmt.Sprintf("%s%dx", prefix, os.Getpid())
	n := 0
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		line, rerr := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if err == nil && rerr == nil && strings.Contains(string(line), "linger\x00"+mark) {
			n++
			_ = unix.Kill(pid, unix.SIGKILL) // gone already: as good
		}
	}
	return n
}

func addrPort(a string, port uint16) string {
	return netip.AddrPortFrom(netip.MustParseAddr(a), port).String()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

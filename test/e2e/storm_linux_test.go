package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// storm is a probe in a pod that tries its jobs again and again.
type storm struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, log bytes.Buffer
}

// startStorm starts the jobs in the pod, as an ordinary user where this
// process is root.
func (p *pod) startStorm(t *testing.T, jobs []job.Job) *storm {
	t.Helper()
	who := people()[len(people())-1]
	s := &storm{cmd: exec.Command(env.probe, "bare", "--", env.probe, "storm")}
	s.cmd.Dir = who.home(t)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "https_proxy=http://127.0.0.1:3128"}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.cred, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.log
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.do(func() { err = s.cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL) }) // it has ended, mostly
	line, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	return s
}

// end stops the storm and reports the tallies.
func (s *storm) end(t *testing.T) map[string]job.Tally {
	t.Helper()
	_ = s.in.Close() // the word
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("the storm: %v: %s", err, s.log.String())
	}
	var list []job.Tally
	if err := json.Unmarshal(s.out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]job.Tally{}
	for _, tally := range list {
		all[tally.ID] = tally
	}
	return all
}

// rage lets the storm go on for d.
func rage(d time.Duration) { <-time.After(d) }

const (
	stormHost = "any.example.com"
	stormPort = 9000

	aroundHost = "around.example.com" // allowed, and nobody asks for it
)

// stormPolicy allows what allowedStorm asks for.
var stormPolicy = []string{"--allow", exact, "--allow", stormHost + ":*", "--allow", aroundHost + ":*"}

// allowedStorm are requests that stormPolicy allows, one for each door.
func allowedStorm() []job.Job {
	ping := raw("PING\n")
	return []job.Job{
		{ID: "connect", Op: "door.connect", Host: stormHost, Port: stormPort, Payload: ping},
		{ID: "http", Op: "door.http", Host: exact, Port: 80, Payload: httpFor(exact)},
		{ID: "socks5", Op: "door.socks5", Host: stormHost, Port: stormPort, Payload: ping},
		{ID: "socks4", Op: "door.socks4", Host: stormHost, Port: stormPort, Payload: ping},
		{ID: "captured", Op: "door.direct", Host: stormHost, Port: stormPort, Payload: ping},
		{ID: "captured TLS", Op: "door.direct", Host: exact, Port: 443, Payload: tlsFor(exact)},
	}
}

// deniedStorm are requests that it does not allow, and ways around the gate.
func deniedStorm() []job.Job {
	return []job.Job{
		{ID: "x connect", Op: "door.connect", Host: "evil.example.org", Port: 443, Payload: tlsFor("evil.example.org")},
		{ID: "x http", Op: "door.http", Host: "evil.example.org", Port: 80, Payload: httpFor("evil.example.org")},
		{ID: "x socks5", Op: "door.socks5", Host: "evil.example.org", Port: 443, Payload: tlsFor("evil.example.org")},
		{ID: "x captured", Op: "door.direct", Host: "11.66.1.1", Port: 9000, Payload: raw("EXFIL\n")},
		{ID: "x captured TLS", Op: "door.direct", Host: "11.66.1.2", Port: 443, Payload: tlsFor("evil.example.org")},
		{ID: "x IPv6", Op: "door.direct", Host: "2600:66::1", Port: 443, Payload: tlsFor("evil.example.org")},
		{ID: "x dns", Op: "door.dns", Host: "4d5a.evil.example.org", Via: "11.66.1.3:53"},
		{ID: "x dns tcp", Op: "door.dns", Host: "4d5a.evil.example.org", Via: "tcp://11.66.1.3:53"},
		{ID: "x udp", Op: "door.udp", Host: "11.66.1.4", Port: 4242},
		// What the policy allows by name, past the gate. Not an address that others of
		// the storm are taken to: the kernel's memory of a captured connection that
		// was reset stays for 10 seconds and catches egressd's own when it gets the
		// same port for the same address. egressd dials again when it was the one that
		// reset (proxy.Resets), and cannot know of what was reset while it was dead.
		{ID: "x around", Op: "door.direct", Host: publicAddr(aroundHost).String(), Port: stormPort, Payload: raw("PING\n")},
	}
}

// checkStorm: all that is allowed was reached, when it was, and nothing else.
func checkStorm(t *testing.T, all map[string]job.Tally, never bool) {
	t.Helper()
	total := 0
	for id, tally := range all {
		total += tally.Tries
		failed := tally.Tries - tally.Reached
		switch denied := id[:2] == "x "; {
		case tally.Tries == 0:
			t.Errorf("%s: not tried", id)
		case denied && tally.Reached > 0:
			t.Errorf("%s: REACHED %d times of %d", id, tally.Reached, tally.Tries)
		case !denied && tally.Reached == 0:
			t.Errorf("%s: never reached: %+v", id, tally)
		case !denied && never && failed > 0:
			t.Errorf("%s: %d of %d failed: %v %v", id, failed, tally.Tries, tally.Status, tally.Errs)
		}
	}
	t.Logf("%d requests", total)
}

// checkWire: whatever opened something outside went to what the policy allows.
func checkWire(t *testing.T, seen sightings) {
	t.Helper()
	may := []netip.AddrPort{
		netip.AddrPortFrom(publicAddr(stormHost), stormPort), netip.AddrPortFrom(publicAddr(exact), 80), netip.AddrPortFrom(publicAddr(exact), 443),
	}
	wrong := 0
	for _, p := range seen.packets {
		if !slices.Contains(may, p.Dst) {
			if wrong++; wrong <= 5 {
				t.Errorf("a packet outside: %s", p)
			}
		}
	}
	for _, q := range seen.questions {
		if q != stormHost+" A" && q != stormHost+" AAAA" && q != exact+" A" && q != exact+" AAAA" {
			t.Errorf("a DNS question upstream: %s", q)
			return
		}
	}
}

// stormGate is the gate that this process may test: a sidecar as root, else a
// daemon that is attached.
func stormGate(t *testing.T) podGate {
	t.Helper()
	needWorld(t)
	if env.through {
		t.Skip("not about launch")
	}
	return newPodGate(t, os.Geteuid() != 0, false)
}

// TestDaemonKilled: while a daemon that was killed is away, not one packet
// leaves its pod, whoever tries what; and the next one serves again.
func TestDaemonKilled(t *testing.T) {
	g := stormGate(t)
	d := g.start(t, stormPolicy, nil)
	whole := env.world.watchBy(g.pod.sniffer)
	s := g.pod.startStorm(t, append(allowedStorm(), deniedStorm()...))
	for range 3 {
		rage(700 * time.Millisecond)
		d.kill()
		away := env.world.watchBy(g.pod.sniffer)
		rage(300 * time.Millisecond)
		seen := away.end(t)
		for _, p := range append(seen.packets, questionsOf(seen)...) {
			t.Errorf("a packet left while nobody watched: %s", p)
		}
		d = g.start(t, stormPolicy, nil)
	}
	rage(700 * time.Millisecond)
	checkStorm(t, s.end(t), false)
	s = g.pod.startStorm(t, allowedStorm())
	rage(500 * time.Millisecond)
	checkStorm(t, s.end(t), true)
	checkWire(t, whole.end(t))
	if code := d.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// questionsOf lists packets to the DNS upstream that are questions.
func questionsOf(seen sightings) []packet {
	var all []packet
	for _, p := range seen.all {
		if p.Dst == netip.MustParseAddrPort(upstreamDNS+":53") && !p.Reply {
			all = append(all, p)
		}
	}
	return all
}

// TestDaemonReloads: a policy file that changes every 50 ms, under load: no
// allowed request fails and no denied one passes. Then SIGTERM: what is half
// way is finished.
func TestDaemonReloads(t *testing.T) {
	g := stormGate(t)
	dir := daemonDir(t)
	path := dir + "/changing.yaml"
	write := func(n int) {
		text := "allow:\n  - " + exact + "\n  - " + stormHost + ":*\n  - " + aroundHost + ":*\n"
		for i := range n % 7 {
			text += fmt.Sprintf("  - other%d.example.com\n", i)
		}
		if err := os.WriteFile(path+".tmp", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	d := g.start(t, []string{"--policy", path, "--drain", "20s"}, nil)
	before := env.world.watchBy(g.pod.sniffer)
	s := g.pod.startStorm(t, append(allowedStorm(), deniedStorm()...))
	changes := int(env.storm / (50 * time.Millisecond))
	for n := range changes {
		write(n + 1)
		rage(50 * time.Millisecond)
	}
	checkStorm(t, s.end(t), true)
	checkWire(t, before.end(t))
	g.checkDrain(t, d)
	events, _ := readEvents(t, d.events)
	reloads := 0
	for _, e := range events {
		if e["type"] == "policy.loaded" {
			reloads++
		}
	}
	t.Logf("%d changes, %d reloads", changes, reloads)
	if reloads < 3 { // fewer than changes: it waits until a file has settled
		t.Errorf("%d changes, but only %d reloads", changes, reloads)
	}
}

// checkDrain stops the daemon while tunnels, captured connections and a request
// are half way. Each must end well, and so must the daemon.
func (g podGate) checkDrain(t *testing.T, d *daemon) {
	t.Helper()
	const late = 1500
	var jobs []job.Job
	for i := range 30 {
		for _, j := range allowedStorm() {
			if j.Op == "door.http" {
				j.Raw = []byte("POST http://" + exact + "/x HTTP/1.1\r\nHost: " + exact + "\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
			}
			j.ID, j.Delay = fmt.Sprint(i, j.ID), late
			jobs = append(jobs, j)
		}
	}
	s := g.pod.startStorm(t, jobs)
	rage(late / 3 * time.Millisecond) // all have begun, none has ended
	begin := time.Now()
	code := make(chan int, 1)
	go func() { code <- d.stop(t) }()
	all := s.end(t)
	for id, tally := range all {
		if tally.Reached == 0 {
			t.Errorf("%s: was half way at SIGTERM and failed: %+v", id, tally)
		}
	}
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	t.Logf("%d flows half way; drained in %v", len(jobs), time.Since(begin).Round(time.Millisecond))
}

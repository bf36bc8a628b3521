//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// ask floods a DNS door with n questions for name(i), each after the answer to the
// one before, from some clients at once. It reports the codes of the answers.
func ask(t *testing.T, door string, n int, name func(i int) string) map[dnsmessage.RCode]int {
	t.Helper()
	const clients = 4
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := make(map[dnsmessage.RCode]int)
	for c := range clients {
		conn := must(dial("udp", door))(t)
		wg.Go(func() {
			defer conn.Close()
			buf := make([]byte, 1500)
			for i := c; i < n; i += clients {
				q := dnsmessage.Message{
					Header:    dnsmessage.Header{ID: uint16(i), RecursionDesired: true},
					Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name(i)), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
				}
				data, err := q.Pack()
				if err == nil {
					_, err = conn.Write(data)
				}
				var got int
				if err == nil {
					got, err = conn.Read(buf)
				}
				var p dnsmessage.Parser
				var h dnsmessage.Header
				if err == nil {
					h, err = p.Start(buf[:got])
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				codes[h.RCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return codes
}

// told sums the denials of a session up that a file of events tells of, and counts
// its lines.
func told(t *testing.T, path, session string) (lines int, denials int64) {
	t.Helper()
	seq := uint64(0)
	for line := range strings.Lines(string(must(os.ReadFile(path))(t))) {
		var e struct {
			Seq      uint64
			Session  string
			Decision string
			Repeated int64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("line %d is %s", seq, line)
		}
		if e.Session == session && e.Decision == "blocked" {
			lines++
			denials += max(e.Repeated, 1)
		}
	}
	return lines, denials
}

// A client of one policy asks what it may not, as fast as it can: its record is
// bounded, every denial is told, and another policy's flows pass.
func TestFloodOfDenials(t *testing.T) {
	port := echo(t)
	events := filepath.Join(t.TempDir(), "events.jsonl")
	p := start(t, "--policy", "loud="+write(t, "l.yaml", "allow: []\n"), "--policy", "quiet="+write(t, "q.yaml", policyFor("app.test", port)),
		"--dns", "loud@127.0.0.1:0", "--listen", "quiet@127.0.0.1:0", "--admin", "127.0.0.1:0", "--events", events)
	const n = 20_000
	codes := ask(t, p.addr("dns"), n, func(i int) string { return fmt.Sprintf("x%d.evil.example.", i) })
	if codes[dnsmessage.RCodeNameError] != n {
		t.Errorf("the answers are %v", codes)
	}
	check(t, once(p.addr("proxy"), "app.test:"+port))
	_, metrics := get(t, p.addr("admin"), "/metrics")
	for _, want := range []string{
		fmt.Sprintf(`egressd_decisions_total{door="dns",policy="loud",reason="host_not_listed",verdict="blocked"} %d`, n),
		`egressd_events_quota_exhausted{policy="loud"} 0`, `egressd_events_summed_total{policy="quiet"} 0`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exit(patience)
	if lines, denials := told(t, events, "loud"); denials != n || lines > 4000 { // a burst of 2,000, then some hundred a second
		t.Errorf("%d lines tell of %d denials, want %d", lines, denials, n)
	}
}

// One policy's flows use a quota up, another's do not.
func TestEventsQuota(t *testing.T) {
	port := echo(t)
	events := filepath.Join(t.TempDir(), "events.jsonl")
	p := start(t, "--policy", "loud="+write(t, "l.yaml", "allow: ['*.app.test']\n"), "--policy", "quiet="+write(t, "q.yaml", policyFor("app.test", port)),
		"--dns", "loud@127.0.0.1:0", "--listen", "quiet@127.0.0.1:0", "--admin", "127.0.0.1:0", "--events", events, "--events-quota", "total=64K")
	starved(t, p, "total", func(i int) string { return fmt.Sprintf("x%d.app.test.", i) }, port)
	check(t, os.Rename(events, events+".1"))
	p.signal(syscall.SIGHUP)
	eventually(t, "a new file, a new total", func() bool {
		return ask(t, p.addr("dns"), 4, func(int) string { return "y.app.test." })[dnsmessage.RCodeSuccess] == 4
	})
}

// starved floods the policy loud with what it may ask, until it is denied for why,
// and checks that the policy quiet is not.
func starved(t *testing.T, p *process, why string, name func(int) string, port string) {
	t.Helper()
	eventually(t, "the policy loud is denied", func() bool { return ask(t, p.addr("dns"), 1000, name)[dnsmessage.RCodeServerFailure] > 0 })
	if codes := ask(t, p.addr("dns"), 400, name); codes[dnsmessage.RCodeServerFailure] != 400 {
		t.Errorf("what cannot be recorded is answered: %v", codes)
	}
	for range 50 {
		check(t, once(p.addr("proxy"), "app.test:"+port))
	}
	p.wait("level=ERROR", "events quota", "policy=loud", why)
	if n := strings.Count(p.log.String(), "level=ERROR"); n > 3 {
		t.Errorf("%d errors are in the log, for one quota", n)
	}
	code, ready := get(t, p.addr("admin"), "/readyz?verbose")
	if code != 200 || !strings.Contains(ready, "policy loud is denied everything, others are not") || strings.Contains(ready, "policy quiet is denied") {
		t.Errorf("%d: %s", code, ready)
	}
	if _, metrics := get(t, p.addr("admin"), "/metrics"); !strings.Contains(metrics, `egressd_events_quota_exhausted{policy="loud"} 1`) ||
		!strings.Contains(metrics, `egressd_events_quota_exhausted{policy="quiet"} 0`) {
		t.Error("the metrics do not say which policy is denied")
	}
}

// One policy's flows fill the disk of the events up. It is denied, and another
// policy, which had little to say, is not; with room again it goes on.
func TestFloodFillsTheDisk(t *testing.T) {
	if !asRoot(t) {
		return
	}
	dir := t.TempDir()
	check(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"))
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	ballast := filepath.Join(dir, "ballast")
	check(t, os.WriteFile(ballast, make([]byte, 3<<20), 0o600))
	port := echo(t)
	p := start(t, "--policy", "loud="+write(t, "l.yaml", "allow: ['*.app.test']\n"), "--policy", "quiet="+write(t, "q.yaml", policyFor("app.test", port)),
		"--dns", "loud@127.0.0.1:0", "--listen", "quiet@127.0.0.1:0", "--admin", "127.0.0.1:0", "--events", filepath.Join(dir, "events.jsonl"))
	starved(t, p, "file system", func(i int) string { return fmt.Sprintf("x%d.app.test.", i) }, port)
	check(t, os.Remove(ballast))
	eventually(t, "there is room again", func() bool {
		return ask(t, p.addr("dns"), 4, func(int) string { return "y.app.test." })[dnsmessage.RCodeSuccess] == 4
	})
}

//go:build linux

package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rss reports the resident memory of a process in KiB.
func rss(t *testing.T, pid int) int {
	t.Helper()
	status := string(must(os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status"))(t))
	m := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindStringSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	return must(strconv.Atoi(m[1]))(t)
}

// slack is how much more the race detector may take.
func slack() int {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 8
	}
	return 1
}

// tunnels opens n of them at once.
func tunnels(t *testing.T, n int, door, target string) []*tunnel {
	t.Helper()
	var mu sync.Mutex
	var open []*tunnel
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range n / 32 {
				c, err := connect(door, target, "")
				if err == nil {
					err = c.ping()
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				open = append(open, c)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return open
}

// 9,000 idle tunnels, or as many as this machine has descriptors for: they cost
// little, others are served meanwhile, and a reload that denies them all closes
// all of them at once (within a second on a machine that has nothing else to do).
func TestManyIdleTunnels(t *testing.T) {
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := 9000
	if room := (int(min(limit.Cur, 1<<20)) - 1500) / 2; room < n {
		n = room
	}
	if n < 100 {
		t.Skipf("only %d descriptors", limit.Cur)
	}
	port, other := echo(t), echo(t)
	path := write(t, "policy.yaml", policyFor("app.test", port, other)+"limits:\n  connections_per_client: 16384\n")
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--events", t.TempDir()+"/events", "--drain", "2s")
	door := p.addr("proxy")
	before := rss(t, p.cmd.Process.Pid)
	open := tunnels(t, n, door, "app.test:"+port)
	each := float64(rss(t, p.cmd.Process.Pid)-before) / float64(len(open))
	t.Logf("%d tunnels, %.1f KiB each", len(open), each)
	slack := slack()
	const busy = 4 // other programs of this machine, which tests beside this one are
	if each > 40*float64(slack) {
		t.Errorf("%.1f KiB for each idle tunnel", each)
	}
	check(t, once(door, "app.test:"+other))
	if code, body := get(t, p.addr("admin"), "/metrics"); code != http.StatusOK || !strings.Contains(body, "egressd_open_flows") {
		t.Errorf("/metrics: %d", code)
	}
	ways["rename"](t, path, policyFor("app.test", other))
	begin := time.Now()
	for _, c := range open {
		_ = c.SetReadDeadline(begin.Add(patience))
		if _, err := io.Copy(io.Discard, c.r); asTimeout(err) {
			t.Fatal("a tunnel lives on")
		}
	}
	if took := time.Since(begin); took > time.Duration(busy*slack)*time.Second {
		t.Errorf("closing %d tunnels took %v", len(open), took)
	}
	for _, c := range open {
		c.Close()
	}
	check(t, once(door, "app.test:"+other))
}

// Clients that send their heads byte by byte, or nothing at all, do not keep
// others out, and are turned away in the time that the policy gives them.
func TestSlowClients(t *testing.T) {
	port := echo(t)
	path := write(t, "policy.yaml", policyFor("app.test", port)+"limits:\n  head_timeout_seconds: 1\n  connections: 64\n")
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0")
	door := p.addr("proxy")
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 200 {
		c, err := dial("tcp", door)
		check(t, err)
		wg.Go(func() {
			defer c.Close()
			if i%2 == 0 {
				_, _ = io.WriteString(c, "CONNECT app")
			}
			_, _ = io.Copy(io.Discard, c) // until it is closed
		})
	}
	eventually(t, "somebody with something to say is served", func() bool { return once(door, "app.test:"+port) == nil })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("silent clients are still connected")
	}
	eventually(t, "an event says why", func() bool {
		return p.events.count(`"reason":"http_request_timeout"`)+p.events.count(`"reason":"connection_limit_reached"`) > 0
	})
}

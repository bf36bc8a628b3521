package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
	"egressd/test/iproute"
)

// scrape reads the daemon's metrics.
func scrape(t *testing.T, socket string) string {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %s, %v", resp.Status, err)
	}
	return string(text)
}

// sum adds up the series of a metric whose labels hold every one of texts.
func sum(metrics, name string, texts ...string) (total float64) {
lines:
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' '):]), 64)
		if err == nil {
			total += v
		}
	}
	return total
}

// usage is what a daemon holds.
type usage struct {
	rss                     int // KiB
	descriptors, goroutines int
}

var rssLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

func (d *daemon) usage(t *testing.T, admin string) usage {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	u := usage{}
	if m := rssLine.FindSubmatch(status); m != nil {
		u.rss, _ = strconv.Atoi(string(m[1])) // digits
	}
	metrics := scrape(t, admin)
	u.descriptors = int(sum(metrics, "process_open_fds"))
	u.goroutines = int(sum(metrics, "go_goroutines"))
	return u
}

// eventually waits until ok.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(within); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Errorf("not within %v: %s", within, what)
			return
		}
	}
}

// blackhole makes packets to an address vanish, and says so nowhere.
func blackhole(t *testing.T, addr string) {
	t.Helper()
	hole := iproute.Route{To: netip.MustParsePrefix(addr + "/32"), Hole: true, First: true}
	if err := hole.Add(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		if err := hole.Remove(); err != nil {
			t.Error(err)
		}
	})
}

// trouble are clients and origins that behave badly.
func trouble() []job.Job {
	jobs := []job.Job{
		{ID: "x reset", Op: "door.connect", Host: stormHost, Port: resetPort, Payload: raw("PING\n")},
		{ID: "x refused", Op: "door.connect", Host: stormHost, Port: 9999, Payload: raw("PING\n")},
		{ID: "x blackhole", Op: "door.connect", Host: "hole.example.com", Port: stormPort, Payload: raw("PING\n")},
		{ID: "x blackhole captured", Op: "door.direct", Host: "hole.example.com", Port: stormPort, Payload: raw("PING\n")},
		{ID: "x mute DNS", Op: "door.socks5", Host: "mute.example.com", Port: stormPort, Payload: raw("PING\n")},
		{ID: "x broken DNS", Op: "door.connect", Host: "servfail.example.com", Port: stormPort, Payload: raw("PING\n")},
		{ID: "x no such name", Op: "door.connect", Host: "nx.example.com", Port: stormPort, Payload: raw("PING\n")},
	}
	half := 400 // at a time; each is kept until the gate or 2 seconds end it
	if env.storm >= 10*time.Second {
		half = 4000
	}
	for i := range half {
		head := "CONNECT " + stormHost + ":9000 HTTP/1.1\r\nHost: "
		switch i % 4 {
		case 1:
			head = "\x05"
		case 2:
			head = "GET http://" + exact + "/ HTTP/1.1\r\nX-Slow: "
		case 3:
			head = "\x04\x01\x23"
		}
		jobs = append(jobs, job.Job{ID: fmt.Sprint("x half ", i), Op: "door.half", Raw: []byte(head), Delay: 2000})
	}
	return jobs
}

// TestDaemonTrouble: slow and half-open clients, origins that reset, refuse or
// say nothing, DNS that is dead or broken, and denied requests, all at once.
// Allowed requests work meanwhile; each decision is in the metrics and in the
// events, the same number of times; and afterwards the daemon holds what it
// held before.
func TestDaemonTrouble(t *testing.T) {
	g := stormGate(t)
	blackhole(t, "11.99.1.1")
	admin := filepath.Join(daemonDir(t), "admin.sock")
	flags := append([]string{
		"--admin", "unix:" + admin, "--host", "hole.example.com=11.99.1.1",
		"--allow", "hole.example.com:*,mute.example.com:*,servfail.example.com:*,nx.example.com:*",
	}, stormPolicy...)
	d := g.start(t, flags, nil)
	s := g.pod.startStorm(t, allowedStorm())
	rage(300 * time.Millisecond)
	checkStorm(t, s.end(t), true)
	before := d.usage(t, admin)

	bad := g.pod.startStorm(t, append(trouble(), deniedStorm()...))
	good := g.pod.startStorm(t, allowedStorm())
	rage(env.storm)
	during := d.usage(t, admin)
	checkStorm(t, good.end(t), true)
	denied := bad.end(t)
	checkStorm(t, denied, false)

	eventually(t, 40*time.Second, "all flows have ended", func() bool {
		m := scrape(t, admin)
		return sum(m, "egressd_open_flows") == 0 && sum(m, "egressd_open_connections") == 0
	})
	var after usage
	eventually(t, 20*time.Second, "descriptors and goroutines are back", func() bool {
		after = d.usage(t, admin)
		return after.descriptors <= before.descriptors+10 && after.goroutines <= before.goroutines+10
	})
	t.Logf("before %+v, during %+v, after %+v", before, during, after)
	if after.rss > before.rss+48<<10 {
		t.Errorf("memory grew from %d KiB to %d KiB", before.rss, after.rss)
	}
	metrics := scrape(t, admin)
	if code := d.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	events, _ := readEvents(t, d.events)
	checkAccount(t, metrics, events, denied)
}

// times is how many decisions an event is about: denials that come too fast are
// summed up.
func times(e map[string]any) float64 {
	if n, ok := e["repeated"].(float64); ok {
		return n
	}
	return 1
}

// checkAccount compares the metrics with the events, and both with what the
// clients saw.
func checkAccount(t *testing.T, metrics string, events []map[string]any, denied map[string]job.Tally) {
	t.Helper()
	type key struct{ door, decision, reason string }
	counted := map[key]float64{}
	hosts := map[any]int{}
	for i, e := range events {
		if e["seq"] != float64(i+1) {
			t.Fatalf("line %d has seq %v", i+1, e["seq"])
		}
		if e["type"] == "network.connected" || e["type"] == "dns.query" {
			counted[key{fmt.Sprint(e["door"]), fmt.Sprint(e["decision"]), fmt.Sprint(e["reason"])}] += times(e)
		}
		if e["type"] == "network.connected" && e["decision"] == "blocked" {
			hosts[e["host"]] += int(times(e))
		}
	}
	total := 0.0
	for k, n := range counted {
		total += n
		if got := sum(metrics, "egressd_decisions_total", `door="`+k.door+`"`, `="`+k.decision+`"`, `reason="`+k.reason+`"`); got != n {
			t.Errorf("%+v: %v events, but the metrics count %v", k, n, got)
		}
	}
	if got := sum(metrics, "egressd_decisions_total"); got != total {
		t.Errorf("%v decisions in the events, %v in the metrics", total, got)
	}
	evil := denied["x connect"].Tries + denied["x http"].Tries + denied["x socks5"].Tries
	evil += denied["x captured TLS"].Tries + denied["x IPv6"].Tries
	if hosts["evil.example.org"] < evil {
		t.Errorf("%d requests and hellos for evil.example.org were refused, %d events say so", evil, hosts["evil.example.org"])
	}
	if hosts["11.66.1.1"] < denied["x captured"].Tries {
		t.Errorf("%d captured connections were refused, %d events say so", denied["x captured"].Tries, hosts["11.66.1.1"])
	}
	t.Logf("%v decisions, %d combinations of door, verdict and reason", total, len(counted))
}

// TestDaemonStuckPipe: nobody reads the events. Nothing passes that is not
// recorded, the daemon answers on, and it serves again once somebody reads.
func TestDaemonStuckPipe(t *testing.T) {
	g := stormGate(t)
	dir := daemonDir(t)
	fifo := filepath.Join(dir, "events")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0) // open, but not read
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	admin := filepath.Join(dir, "admin.sock")
	d := g.start(t, append([]string{"--admin", "unix:" + admin, "--events", fifo}, stormPolicy...), nil)
	s := g.pod.startStorm(t, append(allowedStorm(), deniedStorm()...))
	stuck := func() bool {
		m := scrape(t, admin)
		// Captured clients do not come so far: their DNS questions go unanswered.
		for _, door := range []string{"connect", "http", "socks4", "socks5"} {
			if sum(m, "egressd_decisions_total", `door="`+door+`"`, `reason="record_unavailable"`) == 0 {
				return false
			}
		}
		return true
	}
	eventually(t, 20*time.Second, "flows are refused at every door because they cannot be recorded", stuck)
	visits := env.world.origins.mark()
	rage(300 * time.Millisecond)
	passed := said(env.world.origins.since(visits))
	lines := make(chan int, 1)
	go func() {
		n := 0
		in := bufio.NewScanner(reader)
		for in.Scan() {
			if strings.Contains(in.Text(), `"decision":"allowed"`) && strings.Contains(in.Text(), `"network.connected"`) {
				n++
			}
			if strings.Contains(in.Text(), "the end of the test") {
				break
			}
		}
		lines <- n
	}()
	eventually(t, 10*time.Second, "it serves again", func() bool {
		mark := env.world.origins.mark()
		rage(50 * time.Millisecond)
		return said(env.world.origins.since(mark)) > 0
	})
	all := s.end(t)
	checkStorm(t, all, false)
	if code := d.stop(t); code != 1 {
		t.Errorf("exit code %d: the record is not whole, and nobody hears of it", code)
	}
	if _, err := reader.WriteString("the end of the test\n"); err != nil {
		t.Fatal(err)
	}
	reached := 0
	for _, tally := range all {
		reached += tally.Reached
	}
	n := <-lines
	t.Logf("%d reached, %d recorded, %d said while stuck", reached, n, passed)
	if n < reached {
		t.Errorf("%d requests reached an origin, %d allowed connections are recorded", reached, n)
	}
	if passed > len(allowedStorm())*2 {
		t.Errorf("%d requests passed while nobody read the events", passed)
	}
}

// said counts visits at which something was said.
func said(visits []visit) (n int) {
	for _, v := range visits {
		if v.Bytes != "" || v.Host != "" || v.SNI != "" {
			n++
		}
	}
	return n
}

//go:build system

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/event/phase"
	"egressd/policy"
)

// patience bounds the wait for Prometheus on a busy machine.
const patience = time.Minute

// busy is a daemon to which everything happens before each scrape.
func busy(t *testing.T) *httptest.Server {
	m := full(t)
	p := compiled(t, "allow:\n  - a.example.com\n")
	var bytes, scrapes atomic.Uint64
	m.Gate("default", func() Stats {
		n := bytes.Add(1 << 20)
		return Stats{Connections: 3, Most: 10, Flows: 2, BytesOut: n, BytesIn: n, Dropped: n >> 20, AcceptErrors: n >> 20}
	})
	m.Probe(Probes{
		Ready: func() error { return nil }, Sessions: func() int { return 7 }, Written: func() uint64 { return bytes.Load() },
		Room: func() (uint64, uint64, bool) { return 10, 100, true },
	})
	audited, sink := m.Audit(eventtest.Discard{}), m.Sink("default")
	asked := m.DNSServer("udp://192.0.2.1:53")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, e := range []event.Event{
			decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed),
			decision(event.DoorSOCKS5, event.Blocked, policy.ReasonHostNotListed),
			decision(event.DoorConnect, event.Blocked, policy.ReasonOverload),
			{Body: &event.Query{Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, RCode: event.NXDomain}},
			{Body: &event.Close{Duration: time.Second}},
			{Body: new(event.SessionOpened)},
			{Body: new(event.SessionRefused)},
			{Body: new(event.SessionClosed)},
		} {
			_, _ = audited.Emit(e), sink.Emit(e)
		}
		for i := range phase.Count {
			m.Took(i, 0, time.Millisecond)
		}
		asked(time.Millisecond, true)
		m.PolicyLoaded("default", p, time.Unix(1700000000+int64(scrapes.Add(1)), 0))
		m.TokensLoaded(4, nil)
		m.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// run starts Prometheus, which scrapes target every 200 ms, and reports its address.
func run(t *testing.T, prometheus, target string) string {
	t.Helper()
	// An address of this process's own: between here and Prometheus nobody takes its port.
	pid := os.Getpid()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.%d.%d.%d:0", 100+pid>>16&63, pid>>8&255, 1+pid&127))
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n  - job_name: egressd\n    scrape_interval: 200ms\n    scrape_timeout: 200ms\n    static_configs:\n      - targets: [%q]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return addr
}

// query reports how many series Prometheus finds, or why it does not look.
func query(ctx context.Context, client *http.Client, addr, expr string) (series int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience/10)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var got struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return 0, fmt.Errorf("%s: %w", resp.Status, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || got.Status != "success" {
		return 0, fmt.Errorf("%s: %s", resp.Status, got.Error)
	}
	for _, r := range got.Data.Result {
		if text, _ := r.Value[1].(string); text != "NaN" {
			if _, err := strconv.ParseFloat(text, 64); err != nil {
				return 0, err
			}
			series++
		}
	}
	return series, nil
}

// Each query of the dashboard, evaluated by a real Prometheus over a daemon to which
// everything happens, has something to show.
func TestDashboardShows(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not here: it is in Debian's package of that name")
	}
	var board struct {
		Panels      []panel
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(read(t, "deploy/grafana/egressd.json"), &board); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs[target.Expr] = p.Title
		}
	}
	for _, a := range board.Annotations.List {
		exprs[a.Expr] = "annotation"
	}
	if len(exprs) < 40 {
		t.Fatalf("only %d queries", len(exprs))
	}
	addr := run(t, prometheus, strings.TrimPrefix(busy(t).URL, "http://"))
	variables := strings.NewReplacer("$job", ".*", "$instance", ".*", "$policy", ".*", "$__rate_interval", "1m", "$__interval", "1m", "$__range", "1m")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	one := new(http.Transport) // connection for all queries: Prometheus takes 512 at most
	defer one.CloseIdleConnections()
	client := &http.Client{Transport: one}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for len(exprs) > 0 {
		last := map[string]error{}
		for expr := range exprs {
			n, err := query(ctx, client, addr, variables.Replace(expr))
			if last[expr] = err; n > 0 {
				delete(exprs, expr)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			for expr, title := range exprs {
				t.Errorf("%s shows nothing: %s (%v)", title, expr, last[expr])
			}
			return
		}
	}
}

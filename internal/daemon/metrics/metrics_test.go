package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/policy/room"
)

func compiled(t *testing.T, text string) *policy.Policy {
	t.Helper()
	doc, err := policy.ParseFile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func emit(t *testing.T, s event.Sink, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if err := s.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
}

func decision(door event.Door, d event.Decision, reason policy.Reason) event.Event {
	h, err := policy.ParseHost("client.chose.example")
	if err != nil {
		panic(err)
	}
	return event.Event{Body: &event.Connection{Door: door, Verdict: event.Verdict{Decision: d, Reason: reason}, Host: h}}
}

// scrape reports what a scraper sees.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// has checks that each line is in text, once.
func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	all := strings.Split(text, "\n")
	for _, want := range lines {
		n := 0
		for _, line := range all {
			if line == want {
				n++
			}
		}
		if n != 1 {
			name, _, _ := strings.Cut(want, "{")
			var near []string
			for _, line := range all {
				if strings.HasPrefix(line, name) {
					near = append(near, line)
				}
			}
			t.Errorf("%d lines are %s; near it:\n%s", n, want, strings.Join(near, "\n"))
		}
	}
}

// full makes metrics in which every series of ours exists.
func full(t *testing.T) *Metrics {
	t.Helper()
	m := New("v1.2.3")
	s := m.Sink("default")
	emit(t, s,
		decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed),
		decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed),
		decision(event.DoorSOCKS5, event.Blocked, policy.ReasonHostNotListed),
		event.Event{Body: &event.Query{Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, RCode: event.NXDomain}},
		event.Event{Body: &event.Close{Door: event.DoorConnect, Duration: 1500 * time.Millisecond, BytesIn: 10}},
		event.Event{Body: new(event.SessionOpened)}, event.Event{Body: new(event.SessionRefused)}, event.Event{Body: new(event.SessionClosed)},
		event.Event{Body: new(event.RunCompleted)},
	)
	m.Gate("default", func() Stats {
		return Stats{Connections: 3, Most: 10, Flows: 2, BytesOut: 100, BytesIn: 1 << 40, Dropped: 5, AcceptErrors: 6}
	})
	m.PolicyLoaded("default", compiled(t, "allow:\n  - a.example.com\n  - b.example.com\ndeny:\n  - c.example.com\nlimits:\n  connections: 10\n"), time.Unix(1700000000, 0))
	m.TokensLoaded(4, nil)
	m.Volume("default", func() Volume { return Volume{Summed: 8, Exhausted: true} })
	audited := m.Audit(eventtest.Discard{})
	emit(t, audited, event.Event{})
	for p := range phase.Count {
		m.Took(p, 1, time.Millisecond)
	}
	m.DNSServer("udp://192.0.2.1:53")(time.Millisecond, true)
	m.Probe(Probes{
		Ready: func() error { return nil }, Sessions: func() int { return 7 }, Written: func() uint64 { return 4096 },
		Room: func() (uint64, uint64, bool) { return 10, 100, true },
	})
	return m
}

func TestScrape(t *testing.T) {
	text := scrape(t, full(t))
	has(t, text,
		`egressd_decisions_total{door="connect",policy="default",reason="allowed",verdict="allowed"} 2`,
		`egressd_decisions_total{door="socks5",policy="default",reason="host_not_listed",verdict="blocked"} 1`,
		`egressd_decisions_total{door="dns",policy="default",reason="host_not_listed",verdict="blocked"} 1`,
		`egressd_dns_queries_total{policy="default",rcode="NXDOMAIN"} 1`,
		`egressd_flow_duration_seconds_count{policy="default"} 1`,
		`egressd_flow_duration_seconds_sum{policy="default"} 1.5`,
		`egressd_flow_duration_seconds_bucket{policy="default",le="1"} 0`,
		`egressd_flow_duration_seconds_bucket{policy="default",le="5"} 1`,
		`egressd_sessions_total{policy="default",result="opened"} 1`,
		`egressd_sessions_total{policy="default",result="refused"} 1`,
		`egressd_sessions_total{policy="default",result="closed"} 1`,
		`egressd_open_connections{policy="default"} 3`, `egressd_connections_limit{policy="default"} 10`,
		`egressd_open_flows{policy="default"} 2`,
		`egressd_flow_bytes_total{direction="out",policy="default"} 100`,
		`egressd_flow_bytes_total{direction="in",policy="default"} 1.099511627776e+12`,
		`egressd_dropped_connections_total{policy="default"} 5`,
		`egressd_accept_errors_total{policy="default"} 6`,
		`egressd_policy_loads_total{policy="default",result="loaded"} 1`,
		`egressd_policy_loads_total{policy="default",result="rejected"} 0`,
		`egressd_policy_last_load_successful{policy="default"} 1`,
		`egressd_policy_last_load_success_timestamp_seconds{policy="default"} 1.7e+09`,
		`egressd_policy_rules{action="allow",policy="default"} 2`,
		`egressd_policy_rules{action="deny",policy="default"} 1`,
		`egressd_policy_limit{limit="connections",policy="default"} 10`,
		`egressd_policy_limit{limit="connections_per_client",policy="default"} 10`,
		`egressd_policy_limit{limit="idle_timeout_seconds",policy="default"} 3600`,
		`egressd_tokens 4`,
		`egressd_events_summed_total{policy="default"} 8`,
		`egressd_events_quota_exhausted{policy="default"} 1`,
		`egressd_tokens_loads_total{result="loaded"} 1`,
		`egressd_events_written_total 1`, `egressd_events_bytes_total 4096`, `egressd_event_write_seconds_count 1`,
		`egressd_events_disk_free_bytes 10`, `egressd_events_disk_size_bytes 100`,
		`egressd_events_failed_total 0`,
		`egressd_ready 1`,
		`egressd_open_sessions 7`,
	)
	for _, want := range []string{`egressd_build_info{goversion="go`, `version="v1.2.3"} 1`, "\ngo_goroutines ", "\nprocess_open_fds ", "\nprocess_max_fds ", `egressd_policy_info{digest="sha256:`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "client.chose") {
		t.Error("what a client chose is in the metrics")
	}
}

// Names, types and units follow Prometheus' conventions.
func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(full(t).reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A fresh daemon can be scraped, and is not ready.
func TestEmpty(t *testing.T) {
	text := scrape(t, New(""))
	has(t, text, "egressd_ready 0", "egressd_open_sessions 0", "egressd_events_failed_total 0")
	if !strings.Contains(text, `version="unknown"`) {
		t.Error("no version")
	}
}

func series(t *testing.T, m *Metrics, name string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(m.reg, name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReloads(t *testing.T) {
	m := New("v")
	one, two := compiled(t, "allow:\n  - a.example.com\n"), compiled(t, "allow:\n  - b.example.com\n")
	m.PolicyLoaded("a", one, time.Unix(1000, 0))
	m.PolicyLoaded("b", one, time.Unix(1000, 0))
	m.PolicyLoaded("a", two, time.Unix(2000, 5e8))
	m.PolicyRejected("a")
	m.TokensLoaded(2, nil)
	m.TokensLoaded(0, errors.New("bad"))
	has(t, scrape(t, m),
		`egressd_policy_loads_total{policy="a",result="loaded"} 2`,
		`egressd_policy_loads_total{policy="a",result="rejected"} 1`,
		`egressd_policy_last_load_successful{policy="a"} 0`,
		`egressd_policy_last_load_successful{policy="b"} 1`,
		`egressd_policy_last_load_success_timestamp_seconds{policy="a"} 2000.5`,
		fmt.Sprintf("egressd_policy_info{digest=%q,policy=\"a\"} 1", two.Digest()),
		fmt.Sprintf("egressd_policy_info{digest=%q,policy=\"b\"} 1", one.Digest()),
		`egressd_tokens 2`,
		`egressd_tokens_loads_total{result="rejected"} 1`,
	)
	if n := series(t, m, "egressd_policy_info"); n != 2 {
		t.Errorf("%d digests are in force", n)
	}
}

// Totals never fall, though gates come and go under one name.
func TestGatesComeAndGo(t *testing.T) {
	m := New("v")
	a, b := Stats{Connections: 1, Flows: 1, BytesOut: 10, BytesIn: 20, Dropped: 1, AcceptErrors: 2}, Stats{Connections: 2, Flows: 3, BytesOut: 5}
	doneA := m.Gate("s", func() Stats { return a })
	doneB := m.Gate("s", func() Stats { return b })
	has(t, scrape(t, m), `egressd_open_connections{policy="s"} 3`, `egressd_flow_bytes_total{direction="out",policy="s"} 15`)
	a.BytesOut = 11
	doneA()
	doneA()
	a.BytesOut = 1000
	has(t, scrape(t, m), `egressd_open_connections{policy="s"} 2`, `egressd_open_flows{policy="s"} 3`,
		`egressd_flow_bytes_total{direction="out",policy="s"} 16`, `egressd_flow_bytes_total{direction="in",policy="s"} 20`,
		`egressd_dropped_connections_total{policy="s"} 1`, `egressd_accept_errors_total{policy="s"} 2`)
	doneB()
	has(t, scrape(t, m), `egressd_open_connections{policy="s"} 0`, `egressd_flow_bytes_total{direction="out",policy="s"} 16`)
	if n := len(m.gates["s"].live); n != 0 {
		t.Errorf("%d gates are kept", n)
	}
}

type failing struct{ err error }

func (f failing) Emit(event.Event) error { return f.err }

func TestAudit(t *testing.T) {
	m := New("v")
	full := errors.New("disk full")
	if err := m.Audit(failing{full}).Emit(event.Event{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	has(t, scrape(t, m), "egressd_events_written_total 0", "egressd_events_failed_total 1")
}

// Everything at once, for the race detector; no count is lost.
func TestConcurrent(t *testing.T) {
	m := New("v")
	p := compiled(t, "allow:\n  - a.example.com\n")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s := m.Sink("p" + strconv.Itoa(i%2))
			for range 500 {
				emit(t, s, decision(event.DoorHTTP, event.Allowed, policy.ReasonAllowed))
			}
		})
		wg.Go(func() {
			for range 20 {
				m.Gate("p0", func() Stats { return Stats{BytesOut: 1} })()
				m.PolicyLoaded("p0", p, time.Now())
				m.Probe(Probes{Ready: func() error { return nil }})
				scrape(t, m)
			}
		})
	}
	wg.Wait()
	has(t, scrape(t, m),
		`egressd_decisions_total{door="http",policy="p0",reason="allowed",verdict="allowed"} 1000`,
		`egressd_decisions_total{door="http",policy="p1",reason="allowed",verdict="allowed"} 1000`,
		`egressd_flow_bytes_total{direction="out",policy="p0"} 80`,
	)
}

func TestEmitAllocatesNothing(t *testing.T) {
	m := New("v")
	s, audited := m.Sink("default"), m.Audit(eventtest.Discard{})
	for _, e := range []event.Event{
		decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed),
		{Body: &event.Query{Verdict: event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}, RCode: event.NoError}},
		{Body: &event.Close{Duration: 12 * time.Millisecond}},
		{Body: &event.Connection{Door: 255, Verdict: event.Verdict{Decision: 255, Reason: 255}}},
	} {
		if n := testing.AllocsPerRun(100, func() { _ = s.Emit(e); _ = audited.Emit(e) }); n != 0 {
			t.Errorf("%s: %v allocations", e.Type(), n)
		}
	}
}

func BenchmarkEmit(b *testing.B) {
	s := New("v").Sink("default")
	e := decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Emit(e)
	}
}

// A scraper that asks for OpenMetrics gets it; one that asks for protobuf gets native
// histograms beside the classic buckets.
func TestFormats(t *testing.T) {
	m := full(t)
	for accept, want := range map[string]string{
		"application/openmetrics-text; version=1.0.0": "application/openmetrics-text; version=1.0.0",
		"text/plain": "text/plain; version=0.0.4",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf",
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %d %s", accept, w.Code, got)
		}
		if strings.Contains(accept, "openmetrics") && !strings.HasSuffix(w.Body.String(), "# EOF\n") {
			t.Error("OpenMetrics without an end")
		}
	}
	families, err := m.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "egressd_event_write_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h.Schema == nil || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) != 13 || h.GetBucket()[0].GetUpperBound() != 0.0001 {
			t.Errorf("%+v", h)
		}
		return
	}
	t.Error("no histogram")
}

// What a daemon pays for one event on its way to the writer.
func BenchmarkAudit(b *testing.B) {
	s := New("v").Audit(eventtest.Discard{})
	e := decision(event.DoorConnect, event.Allowed, policy.ReasonAllowed)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Emit(e)
	}
}

// What is shown of connections is what is in force on this machine.
func TestLimitsTellTheMachine(t *testing.T) {
	m := New("v")
	m.Room(room.Room{Files: 9468, Memory: 7168})
	m.PolicyLoaded("small", compiled(t, "allow:\n  - a.example.com\n"), time.Unix(1, 0))
	m.PolicyLoaded("named", compiled(t, "limits:\n  connections: 8000\n"), time.Unix(1, 0))
	has(t, scrape(t, m),
		`egressd_policy_limit{limit="connections",policy="small"} 7168`, `egressd_policy_limit{limit="connections_per_client",policy="small"} 3584`,
		`egressd_policy_limit{limit="connections",policy="named"} 8000`, `egressd_policy_limit{limit="connections_per_client",policy="named"} 8000`,
	)
}

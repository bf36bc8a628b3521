package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
)

func TestPhases(t *testing.T) {
	m := New("v")
	for p := range phase.Count {
		m.Took(p, 0, 200*time.Microsecond)
	}
	m.Took(phase.Count, 1, time.Second) // of a newer engine: nobody knows it
	asked := m.DNSServer("udp://192.0.2.1:53")
	asked(3*time.Millisecond, false)
	asked(2*time.Second, true)
	text := scrape(t, m)
	for _, name := range []string{"decision", "dial", "client_tls", "tunnel_first_byte", "request_first_byte"} {
		has(t, text, "egressd_"+name+"_seconds_count 1", `egressd_`+name+`_seconds_bucket{le="0.0001"} 0`, `egressd_`+name+`_seconds_bucket{le="0.00025"} 1`)
	}
	has(t, text, `egressd_dns_server_seconds_count{server="udp://192.0.2.1:53"} 2`, `egressd_dns_server_failures_total{server="udp://192.0.2.1:53"} 1`,
		`egressd_dns_server_seconds_bucket{server="udp://192.0.2.1:53",le="0.005"} 1`)
}

// However many servers policies name over time, the series are bounded.
func TestServersAreBounded(t *testing.T) {
	m := New("v")
	for i := range maxServers + 10 {
		m.DNSServer(fmt.Sprintf("udp://192.0.2.%d:53", i+1))(time.Millisecond, false)
	}
	if n := series(t, m, "egressd_dns_server_seconds"); n != maxServers+1 {
		t.Errorf("%d series, want %d", n, maxServers+1)
	}
	has(t, scrape(t, m), `egressd_dns_server_seconds_count{server="other"} 10`)
}

// The exemplar of a histogram names a flow, by which its events are found.
func TestExemplars(t *testing.T) {
	m := New("v")
	m.Took(phase.Dial, 4711, 30*time.Millisecond)
	m.Took(phase.Dial, 4712, 30*time.Millisecond) // within the second
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	if text := w.Body.String(); !strings.Contains(text, `egressd_dial_seconds_bucket{le="0.05"} 2 # {flow="4711"} 0.03`) || strings.Contains(text, "4712") {
		t.Errorf("no exemplar of the first flow alone:\n%s", text)
	}
}

// unusedOf reports the number of unused rules that a scrape shows.
func unusedOf(t *testing.T, m *Metrics, allow, deny int) {
	t.Helper()
	has(t, scrape(t, m), fmt.Sprintf(`egressd_policy_unused_rules{action="allow",policy="default"} %d`, allow),
		fmt.Sprintf(`egressd_policy_unused_rules{action="deny",policy="default"} %d`, deny))
}

func TestUnusedRules(t *testing.T) {
	m := New("v")
	s := m.Sink("default")
	text := "allow:\n  - a.example.com\n  - '*.b.example.com'\ndeny:\n  - c.example.com\n"
	p := compiled(t, text)
	m.PolicyLoaded("default", p, time.Unix(1, 0))
	unusedOf(t, m, 2, 1)
	decide := func(p *policy.Policy, host string) {
		h, err := policy.ParseHost(host)
		if err != nil {
			t.Fatal(err)
		}
		emit(t, s, event.Event{Body: &event.Connection{Verdict: event.Judged(p.Decide(policy.Request{Host: h, Port: 443}))}})
	}
	decide(p, "x.b.example.com")
	decide(p, "nobody.example.com")
	unusedOf(t, m, 1, 1)
	decide(p, "c.example.com")
	decide(compiled(t, text), "a.example.com") // a rule of another policy, in the same place
	unusedOf(t, m, 1, 0)
	if got, want := m.Unused(), []string{"policy default: allow a.example.com (p.yaml:2:5)"}; !slices.Equal(got, want) {
		t.Errorf("unused: %q, want %q", got, want)
	}
	m.PolicyLoaded("default", p, time.Unix(2, 0)) // somebody asked, nothing changed
	unusedOf(t, m, 1, 0)
	m.PolicyLoaded("default", compiled(t, text+"  - d.example.com\n"), time.Unix(3, 0))
	unusedOf(t, m, 2, 2)
}

// Timing allocates nothing, also from several goroutines, apart from one exemplar a second.
func TestTookAllocatesNothing(t *testing.T) {
	m := New("v")
	asked := m.DNSServer("udp://192.0.2.1:53")
	m.Took(phase.Dial, 1, time.Millisecond)
	m.phases.parts[phase.Dial].exemplar.Store(time.Now().Add(time.Hour).UnixNano()) // the second is not over
	for p := range phase.Count {
		m.Took(p, 0, time.Millisecond)
	}
	if n := testing.AllocsPerRun(100, func() {
		m.Took(phase.Decision, 0, time.Millisecond)
		m.Took(phase.Dial, 7, time.Millisecond)
		asked(time.Millisecond, false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				m.Took(phase.FirstByte, uint64(i), time.Millisecond)
				asked(time.Millisecond, false)
			}
		})
	}
	wg.Wait()
	has(t, scrape(t, m), "egressd_tunnel_first_byte_seconds_count 801")
}

func BenchmarkTook(b *testing.B) {
	m := New("v")
	b.Run("decision", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Took(phase.Decision, 0, time.Microsecond)
		}
	})
	b.Run("flow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Took(phase.FirstByte, 1, time.Millisecond)
		}
	})
}

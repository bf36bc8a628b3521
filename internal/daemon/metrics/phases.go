package metrics

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"egressd/event/phase"
)

// Implementation constants.
const (
	maxServers   = 64          // DNS servers with series of their own; later ones share "other"
	exemplarTime = time.Second // between two exemplars of one histogram: each costs allocations
	flowLabel    = "flow"
)

// phases are how long the parts of flows take. They have no label of a policy: a slow
// origin is slow for all, and a histogram for each of thousands would cost more than it
// tells.
type phases struct {
	parts [phase.Count]timed

	seconds *prometheus.HistogramVec // of questions to DNS servers
	failed  *prometheus.CounterVec
	mu      sync.Mutex
	servers map[string]bool // label values given out
}

// timed is one histogram, and when it last had an exemplar.
type timed struct {
	h        prometheus.Observer
	exemplar atomic.Int64 // Unix nanoseconds
}

func newPhases() *phases {
	p := &phases{servers: make(map[string]bool)}
	waits := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	p.parts[phase.Decision].h = prometheus.NewHistogram(histogram("decision_seconds",
		"How long the policy took to decide, once for each check; nothing is waited for.",
		.000001, .000005, .00001, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1))
	p.parts[phase.Dial].h = prometheus.NewHistogram(histogram("dial_seconds",
		"How long connecting to origins or the upstream proxy took, all addresses tried, failures included.", waits...))
	p.parts[phase.ClientTLS].h = prometheus.NewHistogram(histogram("client_tls_seconds",
		"How long TLS handshakes with clients took, where TLS is opened.", waits...))
	p.parts[phase.FirstByte].h = prometheus.NewHistogram(histogram("tunnel_first_byte_seconds",
		"How long after a tunnel began its origin sent the first byte.", waits...))
	p.parts[phase.FirstAnswer].h = prometheus.NewHistogram(histogram("request_first_byte_seconds",
		"How long after a request was sent the head of the origin's response was there.", waits...))
	p.seconds = prometheus.NewHistogramVec(histogram("dns_server_seconds",
		"How long DNS servers took to answer one question, failures included.", waits...), []string{"server"})
	p.failed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "dns_server_failures_total", Help: "Questions that a DNS server did not answer, or refused.",
	}, []string{"server"})
	return p
}

func (p *phases) collectors() []prometheus.Collector {
	out := []prometheus.Collector{p.seconds, p.failed}
	for i := range p.parts {
		out = append(out, p.parts[i].h.(prometheus.Collector)) //nolint:errcheck // every histogram is one
	}
	return out
}

// Took is an [phase.Took]. Of the flows that have a number, one a second is named in
// the histogram's exemplar, by which its events are found.
func (m *Metrics) Took(p phase.Phase, flow uint64, d time.Duration) {
	if p >= phase.Count {
		return
	}
	t := &m.phases.parts[p]
	if e, ok := t.h.(prometheus.ExemplarObserver); ok && flow != 0 {
		now, last := time.Now().UnixNano(), t.exemplar.Load()
		if now-last >= int64(exemplarTime) && t.exemplar.CompareAndSwap(last, now) {
			e.ObserveWithExemplar(d.Seconds(), prometheus.Labels{flowLabel: strconv.FormatUint(flow, 10)})
			return
		}
	}
	t.h.Observe(d.Seconds())
}

// DNSServer makes what counts the questions to one DNS server: how long each took, and
// whether it failed. The name is one that an operator configured.
func (m *Metrics) DNSServer(name string) (asked func(took time.Duration, failed bool)) {
	p := m.phases
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.servers[name] {
		if len(p.servers) >= maxServers || !plain(name) {
			name = other
		} else {
			p.servers[name] = true
		}
	}
	seconds, failures := p.seconds.WithLabelValues(name), p.failed.WithLabelValues(name)
	return func(took time.Duration, failed bool) {
		seconds.Observe(took.Seconds())
		if failed {
			failures.Inc()
		}
	}
}

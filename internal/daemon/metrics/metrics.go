// Package metrics counts what the daemon does, for Prometheus:
//
//	m := metrics.New(version)
//	events := event.Fanout{m.Audit(writer), m.Sink(policyName)}
//	http.Handle("/metrics", m.Handler())
//
// It is a sink over events and a few setters, on a registry of its own. Every label
// value is from a closed list of this program or a name that an operator
// configured, so that no client can make series: a value on no list is counted as
// "other".
package metrics

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"egressd/event"
)

// Implementation constants.
const (
	maxPolicies    = 1024 // names; later ones share the name "other"
	scrapesAtOnce  = 4
	scrapeTimeout  = 10 * time.Second
	other          = "other"
	namespace      = "egressd"
	policyLabel    = "policy"
	noPolicy       = "none" // of clients that no policy judges, since they have not said who they are
	unknownVersion = "unknown"
)

// Metrics is one registry and everything in it. It is safe for concurrent use.
type Metrics struct {
	reg *prometheus.Registry

	written, failed prometheus.Counter
	duration        *prometheus.HistogramVec
	write           prometheus.Histogram // seconds that one event waited for
	reloads         reloads
	phases          *phases

	mu       sync.Mutex
	names    map[string]bool // label values given out for policies
	policies map[string]*counts
	gates    map[string]*gates
	volumes  map[string]func() Volume
	probes   Probes
}

// Probes are asked at every scrape, possibly at the same time. Those that are
// nil report 0.
type Probes struct {
	Ready    func() error  // nil error: ready
	Sessions func() int    // sandboxes that launchers have handed over, now
	Written  func() uint64 // bytes of events so far
	// Room reports the free and the total bytes of the file system that holds the events.
	// ok is false if events do not go to a file.
	Room func() (free, size uint64, ok bool)
}

// histogram is what all histograms share: native buckets, a tenth apart, for a Prometheus
// that asks for them, and these for others.
func histogram(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}
}

// New makes the registry; version is what egressd_build_info reports.
func New(version string) *Metrics {
	if version == "" {
		version = unknownVersion
	}
	m := &Metrics{
		reg:      prometheus.NewRegistry(),
		names:    make(map[string]bool),
		policies: make(map[string]*counts),
		gates:    make(map[string]*gates),
		volumes:  make(map[string]func() Volume),
	}
	m.written = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "events_written_total", Help: "Events that the audit writer took.",
	})
	m.failed = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "events_failed_total", Help: "Events that could not be recorded; their flows were denied.",
	})
	m.duration = prometheus.NewHistogramVec(
		histogram("flow_duration_seconds", "How long allowed flows lasted, by policy; counted when they end.",
			.001, .005, .01, .05, .25, 1, 5, 15, 60, 300, 1800, 7200, 43200), []string{policyLabel},
	)
	m.write = prometheus.NewHistogram(histogram("event_write_seconds", "How long flows waited for their event to be written; those written together count once.",
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5))
	m.reloads, m.phases = newReloads(), newPhases()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, labelled with what was built.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		info, m.written, m.failed, m.duration, m.write, recordCollector{m}, eventCollector{m}, gateCollector{m}, volumeCollector{m}, probeCollector{m}, usageCollector{m},
	)
	m.reg.MustRegister(m.phases.collectors()...)
	m.reg.MustRegister(m.reloads.collectors()...)
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{
		Registry: m.reg, MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout, EnableOpenMetrics: true,
	})
}

// Probe sets what is asked at every scrape.
func (m *Metrics) Probe(p Probes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probes = p
}

// Sink counts the events of the gates that the policy of this name judges; ""
// is shown as "none". It never fails and allocates nothing. Put it behind the
// sink that [Metrics.Audit] made, so that it hears only of what was recorded.
func (m *Metrics) Sink(policyName string) event.Sink {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.countsLocked(m.policyLabelLocked(policyName))
}

// countsLocked reports the counts under a label.
func (m *Metrics) countsLocked(name string) *counts {
	c := m.policies[name]
	if c == nil {
		c = &counts{duration: m.duration.WithLabelValues(name)}
		m.policies[name] = c
	}
	return c
}

// policyLabelLocked reports the label for a configured name: valid UTF-8, and
// bounded in number.
func (m *Metrics) policyLabelLocked(name string) string {
	if name == "" {
		return noPolicy
	}
	if !m.names[name] {
		if len(m.names) >= maxPolicies || !plain(name) {
			return other
		}
		m.names[name] = true
	}
	return name
}

// Audit wraps the sink that must not lose anything, usually the writer, and
// counts what it took and what it refused.
func (m *Metrics) Audit(next event.Sink) event.Sink {
	return &audit{next, m.written, m.failed, m.write}
}

type audit struct {
	next            event.Sink
	written, failed prometheus.Counter
	took            prometheus.Observer
}

// Emit implements [event.Sink].
func (a *audit) Emit(e event.Event) error {
	start := time.Now()
	err := a.next.Emit(e)
	a.took.Observe(time.Since(start).Seconds())
	if err != nil {
		a.failed.Inc()
		return err
	}
	a.written.Inc()
	return nil
}

// Unavailable reports whether the sink behind cannot record.
func (a *audit) Unavailable() error { return event.Fanout{a.next}.Unavailable() }

// EmitBatch counts and hands on many events, as [event.Fanout.EmitBatch] says.
func (a *audit) EmitBatch(batch []event.Event) {
	start := time.Now()
	event.Fanout{a.next}.EmitBatch(batch)
	a.took.Observe(time.Since(start).Seconds())
	var written, failed float64
	for i := range batch {
		switch {
		case batch[i].Settled:
		case batch[i].Err != nil:
			failed++
		default:
			written++
		}
	}
	a.written.Add(written)
	a.failed.Add(failed)
}

// snapshot copies the table of policies for one scrape.
func (m *Metrics) snapshot() (names []string, table map[string]*counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.policies)), maps.Clone(m.policies)
}

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Stats is how one gate stands: proxy.Stats, in this room's own words.
type Stats struct {
	Connections int // client connections, now
	Flows       int // allowed flows that go on, now
	Most        int // connections that are let in at a time, now

	BytesOut, BytesIn uint64 // client to origin and back, total
	Dropped           uint64 // connections that ended without an answer, for want of room; total
	AcceptErrors      uint64 // total
}

// gates are those that share one policy name.
type gates struct {
	live map[int]func() Stats
	next int
	gone Stats // totals of those that have ended
}

// Gate shows the stats of a gate under its policy's name from now on. Call done
// after it has ended: its totals stay counted. Many gates may share a name;
// stats is called at every scrape and must be quick.
func (m *Metrics) Gate(policyName string, stats func() Stats) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := m.policyLabelLocked(policyName)
	g := m.gates[name]
	if g == nil {
		g = &gates{live: make(map[int]func() Stats)}
		m.gates[name] = g
	}
	id := g.next
	g.next++
	g.live[id] = stats
	return func() { m.gateDone(g, id) }
}

func (m *Metrics) gateDone(g *gates, id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats, ok := g.live[id]
	if !ok {
		return
	}
	delete(g.live, id)
	last := stats()
	last.Connections, last.Flows, last.Most = 0, 0, 0
	g.gone = g.gone.plus(last)
}

func (s Stats) plus(other Stats) Stats {
	return Stats{
		Connections: s.Connections + other.Connections, Flows: s.Flows + other.Flows, Most: s.Most + other.Most,
		BytesOut: s.BytesOut + other.BytesOut, BytesIn: s.BytesIn + other.BytesIn,
		Dropped: s.Dropped + other.Dropped, AcceptErrors: s.AcceptErrors + other.AcceptErrors,
	}
}

// sums adds the gates of every name up.
func (m *Metrics) sums() map[string]Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]Stats, len(m.gates))
	for name, g := range m.gates {
		sum := g.gone
		for _, stats := range g.live {
			sum = sum.plus(stats())
		}
		out[name] = sum
	}
	return out
}

// gateCollector shows the stats of every gate.
type gateCollector struct{ m *Metrics }

func gateDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, append([]string{policyLabel}, labels...), nil)
}

func connectionsDesc() *prometheus.Desc {
	return gateDesc("open_connections", "Client connections that are open.")
}

func mostDesc() *prometheus.Desc {
	return gateDesc("connections_limit", "Client connections that are let in at a time: limits.connections, or fewer where the file descriptors do not suffice.")
}

func flowsDesc() *prometheus.Desc { return gateDesc("open_flows", "Allowed flows that go on.") }

func bytesDesc() *prometheus.Desc {
	return gateDesc("flow_bytes_total", "Bytes relayed; out is from clients to origins.", "direction")
}

func droppedDesc() *prometheus.Desc {
	return gateDesc("dropped_connections_total", "Connections beyond a limit that were closed without an answer.")
}

func acceptErrorsDesc() *prometheus.Desc {
	return gateDesc("accept_errors_total", "Connections that the system could not hand over, for want of descriptors for example.")
}

// Describe implements prometheus.Collector.
func (gateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connectionsDesc(), mostDesc(), flowsDesc(), bytesDesc(), droppedDesc(), acceptErrorsDesc()} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g gateCollector) Collect(out chan<- prometheus.Metric) {
	for name, s := range g.m.sums() {
		gauge := func(d *prometheus.Desc, n int) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), name)
		}
		count := func(d *prometheus.Desc, n uint64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{name}, labels...)...)
		}
		gauge(connectionsDesc(), s.Connections)
		gauge(mostDesc(), s.Most)
		gauge(flowsDesc(), s.Flows)
		count(bytesDesc(), s.BytesOut, "out")
		count(bytesDesc(), s.BytesIn, "in")
		count(droppedDesc(), s.Dropped)
		count(acceptErrorsDesc(), s.AcceptErrors)
	}
}

// probeCollector asks the probes.
type probeCollector struct{ m *Metrics }

func readyDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_ready", "1 while the daemon takes traffic.", nil, nil)
}

func openSessionsDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_open_sessions", "Sandboxes that launchers have handed over.", nil, nil)
}

// Describe implements prometheus.Collector.
func (probeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDesc()
	out <- openSessionsDesc()
}

// Collect implements prometheus.Collector.
func (p probeCollector) Collect(out chan<- prometheus.Metric) {
	p.m.mu.Lock()
	probes := p.m.probes
	p.m.mu.Unlock()
	ready, sessions := 0, 0
	if probes.Ready != nil && probes.Ready() == nil {
		ready = 1
	}
	if probes.Sessions != nil {
		sessions = probes.Sessions()
	}
	out <- prometheus.MustNewConstMetric(readyDesc(), prometheus.GaugeValue, float64(ready))
	out <- prometheus.MustNewConstMetric(openSessionsDesc(), prometheus.GaugeValue, float64(sessions))
}

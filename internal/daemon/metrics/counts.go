package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"egressd/event"
)

// counts is the sink of one policy: one number for each combination of label
// values, found without a lock or an allocation. A combination becomes a series
// with its first event.
type counts struct {
	words     *words
	decisions []atomic.Uint64 // by door, verdict, reason
	dns       []atomic.Uint64 // by rcode
	sessions  [sessionCount]atomic.Uint64
	duration  prometheus.Observer
}

// What became of sessions, the values of the label result.
const (
	sessionOpened = iota
	sessionRefused
	sessionClosed
	sessionCount
)

func sessionWord(i int) string { return [...]string{"opened", "refused", "closed"}[i] }

func newCounts(w *words, duration prometheus.Observer) *counts {
	return &counts{
		words:     w,
		decisions: make([]atomic.Uint64, len(w.doors)*verdictCount*len(w.reasons)),
		dns:       make([]atomic.Uint64, len(w.rcodes)),
		duration:  duration,
	}
}

// Emit implements [event.Sink].
func (c *counts) Emit(e event.Event) error {
	switch e.Type {
	case event.NetworkConnected:
		c.decide(&e)
	case event.DNSQuery:
		c.decide(&e)
		c.dns[at(c.words.rcode, e.RCode)].Add(1)
	case event.NetworkClosed:
		c.duration.Observe((time.Duration(e.DurationMS) * time.Millisecond).Seconds())
	case event.SessionOpened:
		c.sessions[sessionOpened].Add(1)
	case event.SessionRefused:
		c.sessions[sessionRefused].Add(1)
	case event.SessionClosed:
		c.sessions[sessionClosed].Add(1)
	}
	return nil
}

// decide counts one decision. Anything but "allowed" is a refusal.
func (c *counts) decide(e *event.Event) {
	verdict := verdictBlocked
	if e.Decision == event.Allowed {
		verdict = verdictAllowed
	}
	c.decisions[c.place(at(c.words.door, string(e.Door)), verdict, at(c.words.reason, e.Reason))].Add(1)
}

func (c *counts) place(door, verdict, reason int) int {
	return (door*verdictCount+verdict)*len(c.words.reasons) + reason
}

// eventCollector shows the counts of every policy.
type eventCollector struct{ m *Metrics }

func decisionsDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_decisions_total", "Decisions about flows, HTTP requests and DNS queries.",
		[]string{policyLabel, "door", "verdict", "reason"}, nil)
}

func dnsDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_dns_queries_total", "DNS queries by the answer's code.", []string{policyLabel, "rcode"}, nil)
}

func sessionsDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_sessions_total", "Sandboxes that launchers offered over the control socket.", []string{policyLabel, "result"}, nil)
}

// Describe implements prometheus.Collector.
func (eventCollector) Describe(out chan<- *prometheus.Desc) {
	out <- decisionsDesc()
	out <- dnsDesc()
	out <- sessionsDesc()
}

// Collect implements prometheus.Collector.
func (e eventCollector) Collect(out chan<- prometheus.Metric) {
	decisions, dns, sessions := decisionsDesc(), dnsDesc(), sessionsDesc()
	names, table := e.m.snapshot()
	for _, name := range names {
		c := table[name]
		show := func(desc *prometheus.Desc, n uint64, labels ...string) {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), append([]string{name}, labels...)...)
			}
		}
		for d, door := range c.words.doors {
			for v := range verdictCount {
				for r, reason := range c.words.reasons {
					show(decisions, c.decisions[c.place(d, v, r)].Load(), door, verdictWord(v), reason)
				}
			}
		}
		for r, rcode := range c.words.rcodes {
			show(dns, c.dns[r].Load(), rcode)
		}
		for s := range sessionCount {
			show(sessions, c.sessions[s].Load(), sessionWord(s))
		}
	}
}

package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"egressd/event"
)

// counts is the sink of one policy: one number for each combination of label
// values, found without a lock or an allocation. A combination becomes a series
// with its first event.
type counts struct {
	decisions [doorCount][verdictCount][reasonCount]atomic.Uint64
	dns       [rcodeCount]atomic.Uint64
	sessions  [sessionCount]atomic.Uint64
	duration  prometheus.Observer
	usage     atomic.Pointer[usage] // of the policy in force; nil: nobody asked to watch it
}

// What became of sessions, the values of the label result.
const (
	sessionOpened = iota
	sessionRefused
	sessionClosed
	sessionCount
)

func sessionWord(i int) string { return [...]string{"opened", "refused", "closed"}[i] }

// Emit implements [event.Sink].
func (c *counts) Emit(e event.Event) error {
	switch b := e.Body.(type) {
	case *event.Connection:
		c.decide(b.Door, b.Verdict)
	case *event.Packet:
		v, _ := e.Verdict()
		c.decide(event.DoorKernel, v)
	case *event.Query:
		c.decide(event.DoorDNS, b.Verdict)
		c.dns[place(b.RCode, firstRCode, lastRCode)].Add(1)
	case *event.Close:
		c.duration.Observe(b.Duration.Seconds())
	case *event.SessionOpened:
		c.sessions[sessionOpened].Add(1)
	case *event.SessionRefused:
		c.sessions[sessionRefused].Add(1)
	case *event.SessionClosed:
		c.sessions[sessionClosed].Add(1)
	}
	return nil
}

// decide counts one decision. Anything but Allowed is a refusal.
func (c *counts) decide(door event.Door, v event.Verdict) {
	c.usage.Load().note(v.Rule)
	verdict := event.Blocked
	if v.Decision == event.Allowed {
		verdict = event.Allowed
	}
	c.decisions[place(door, firstDoor, lastDoor)][verdict][place(v.Reason, firstReason, lastReason)].Add(1)
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
		for d := range c.decisions {
			for v := range c.decisions[d] {
				for r := range c.decisions[d][v] {
					show(decisions, c.decisions[d][v][r].Load(),
						word(d, firstDoor, lastDoor), event.Decision(v).String(), word(r, firstReason, lastReason))
				}
			}
		}
		for r := range c.dns {
			show(dns, c.dns[r].Load(), word(r, firstRCode, lastRCode))
		}
		for s := range sessionCount {
			show(sessions, c.sessions[s].Load(), sessionWord(s))
		}
	}
}

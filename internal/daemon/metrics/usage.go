package metrics

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"egressd/policy"
)

// maxUnused bounds the rules that Unused lists. Implementation constant.
const maxUnused = 10000

// usage is which rules of one policy have decided anything since it is in force. Rules of
// list files are left out: most of a million names are never met.
type usage struct {
	digest string
	rules  []*policy.Rule // allow before deny, in source order
	place  map[*policy.Rule]int
	used   []atomic.Bool // as rules
}

func newUsage(p *policy.Policy) *usage {
	u := &usage{digest: p.Digest(), rules: slices.Concat(p.Own(false), p.Own(true))}
	u.place = make(map[*policy.Rule]int, len(u.rules))
	for i, r := range u.rules {
		u.place[r] = i
	}
	u.used = make([]atomic.Bool, len(u.rules))
	return u
}

// note notes that r has decided. Rules of other policies, such as a sandbox's own under
// a ceiling, are not counted.
func (u *usage) note(r *policy.Rule) {
	if u == nil || r == nil {
		return
	}
	if i, ok := u.place[r]; ok && !u.used[i].Load() {
		u.used[i].Store(true)
	}
}

// unused lists the rules that have decided nothing.
func (u *usage) unused() (out []*policy.Rule) {
	if u == nil {
		return nil
	}
	for i, r := range u.rules {
		if !u.used[i].Load() {
			out = append(out, r)
		}
	}
	return out
}

// watchUsage counts from now on which rules of p are used, unless it is the policy
// that was in force before.
func (m *Metrics) watchUsage(name string, p *policy.Policy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.countsLocked(name)
	if old := c.usage.Load(); name != other && (old == nil || old.digest != p.Digest() || !slices.Equal(old.rules, slices.Concat(p.Own(false), p.Own(true)))) {
		c.usage.Store(newUsage(p))
	}
}

// Unused lists in one line each the rules that have decided nothing since their policy
// is in force, at most 10,000 of them. Those of list files are left out.
func (m *Metrics) Unused() (lines []string) {
	names, table := m.snapshot()
	more := 0
	for _, name := range names {
		for _, r := range table[name].usage.Load().unused() {
			if len(lines) == maxUnused {
				more++
				continue
			}
			action := "allow"
			if r.Deny {
				action = "deny"
			}
			lines = append(lines, fmt.Sprintf("policy %s: %s %s (%s)", name, action, r.Text, r.Pos))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// usageCollector shows how many rules are unused.
type usageCollector struct{ m *Metrics }

func unusedDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_policy_unused_rules", "Rules that have decided nothing since the policy is in force; those of list files are left out.", []string{policyLabel, "action"}, nil)
}

// Describe implements prometheus.Collector.
func (usageCollector) Describe(out chan<- *prometheus.Desc) { out <- unusedDesc() }

// Collect implements prometheus.Collector.
func (u usageCollector) Collect(out chan<- prometheus.Metric) {
	names, table := u.m.snapshot()
	for _, name := range names {
		use := table[name].usage.Load()
		if use == nil {
			continue
		}
		var n [2]int
		for _, r := range use.unused() {
			if r.Deny {
				n[1]++
			} else {
				n[0]++
			}
		}
		out <- prometheus.MustNewConstMetric(unusedDesc(), prometheus.GaugeValue, float64(n[0]), name, "allow")
		out <- prometheus.MustNewConstMetric(unusedDesc(), prometheus.GaugeValue, float64(n[1]), name, "deny")
	}
}

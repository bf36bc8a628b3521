package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"egressd/policy"
	"egressd/policy/room"
)

// reloads are the metrics about policies and tokens: set seldom.
type reloads struct {
	mu      *sync.Mutex // one setter at a time: info's old series goes as the new one comes
	total   *prometheus.CounterVec
	good    *prometheus.GaugeVec // 1: the last load was good
	when    *prometheus.GaugeVec
	info    *prometheus.GaugeVec
	rules   *prometheus.GaugeVec
	limit   *prometheus.GaugeVec
	tokens  prometheus.Gauge
	tokensT *prometheus.CounterVec
	room    room.Room
}

// The values of the label result.
const (
	loaded   = "loaded"
	rejected = "rejected"
)

func newReloads() reloads {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	return reloads{
		mu:    new(sync.Mutex),
		total: count("policy_loads_total", "Loads of the policy, the first included; a rejected one leaves the policy before in force.", policyLabel, "result"),
		good:  gauge("policy_last_load_successful", "1 when the last load was good; 0: what is in force is not what the file says.", policyLabel),
		when:  gauge("policy_last_load_success_timestamp_seconds", "When the policy in force was loaded.", policyLabel),
		info:  gauge("policy_info", "1, labelled with the digest of the policy in force.", policyLabel, "digest"),
		rules: gauge("policy_rules", "Rules in force.", policyLabel, "action"),
		limit: gauge("policy_limit", "Limits in force, in the unit that the limit's name says.", policyLabel, "limit"),
		tokens: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "tokens", Help: "Session tokens in force.",
		}),
		tokensT: count("tokens_loads_total", "Loads of the tokens file, the first included.", "result"),
	}
}

func (r *reloads) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.total, r.good, r.when, r.info, r.rules, r.limit, r.tokens, r.tokensT}
}

// Room says what the machine has room for, before the first policy is loaded. Until then
// limits are shown as the policy names them.
func (m *Metrics) Room(r room.Room) {
	m.reloads.mu.Lock()
	defer m.reloads.mu.Unlock()
	m.reloads.room = r
}

// PolicyLoaded says that p is in force under this name since when.
func (m *Metrics) PolicyLoaded(name string, p *policy.Policy, when time.Time) {
	name = m.policyName(name)
	m.watchUsage(name, p)
	allow, deny := p.Count()
	m.reloads.mu.Lock()
	defer m.reloads.mu.Unlock()
	r := &m.reloads
	r.total.WithLabelValues(name, rejected) // there from the start: an increase needs a number before it
	r.total.WithLabelValues(name, loaded).Inc()
	r.good.WithLabelValues(name).Set(1)
	r.when.WithLabelValues(name).Set(float64(when.UnixMilli()) / 1000)
	r.info.DeletePartialMatch(prometheus.Labels{policyLabel: name})
	r.info.WithLabelValues(name, p.Digest()).Set(1)
	r.rules.WithLabelValues(name, "allow").Set(float64(allow))
	r.rules.WithLabelValues(name, "deny").Set(float64(deny))
	for limit, n := range limitsInForce(p.Limits(), r.room) {
		r.limit.WithLabelValues(name, limit).Set(n)
	}
}

// PolicyRejected says that a load failed: what was in force stays.
func (m *Metrics) PolicyRejected(name string) {
	name = m.policyName(name)
	m.reloads.mu.Lock()
	defer m.reloads.mu.Unlock()
	m.reloads.total.WithLabelValues(name, rejected).Inc()
	m.reloads.good.WithLabelValues(name).Set(0)
}

// TokensLoaded says that n tokens are in force; an error, that the file was
// rejected and the ones before stay.
func (m *Metrics) TokensLoaded(n int, err error) {
	m.reloads.mu.Lock()
	defer m.reloads.mu.Unlock()
	m.reloads.tokensT.WithLabelValues(loaded)
	m.reloads.tokensT.WithLabelValues(rejected)
	if err != nil {
		m.reloads.tokensT.WithLabelValues(rejected).Inc()
		return
	}
	m.reloads.tokensT.WithLabelValues(loaded).Inc()
	m.reloads.tokens.Set(float64(n))
}

func (m *Metrics) policyName(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policyLabelLocked(name)
}

// limitsInForce reports every limit as it is in force where there is this room, by the
// name that it has in a policy file.
func limitsInForce(named policy.Limits, has room.Room) map[string]float64 {
	l, _ := has.InForce(named)
	return map[string]float64{
		"connections":            float64(l.Connections),
		"connections_per_client": float64(l.ConnectionsPerClient),
		"rate_per_second":        l.RatePerSecond,
		"rate_per_client":        l.RatePerClient,
		"bytes_per_flow":         float64(l.BytesPerFlow),
		"max_duration_seconds":   float64(l.MaxDurationSeconds),
		"idle_timeout_seconds":   float64(l.IdleTimeoutSeconds),
		"head_bytes":             float64(l.HeadBytes),
		"hello_bytes":            float64(l.HelloBytes),
		"head_timeout_seconds":   float64(l.HeadTimeoutSeconds),
		"hello_timeout_seconds":  float64(l.HelloTimeoutSeconds),
	}
}

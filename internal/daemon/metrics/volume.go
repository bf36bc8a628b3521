package metrics

import "github.com/prometheus/client_golang/prometheus"

// Volume is how the record of one policy stands.
type Volume struct {
	Summed    uint64 // denials that have no line of their own, total
	Exhausted bool   // the quota is used up: everything is denied
}

// Volume shows how the record of the policy of this name stands; "" is shown as
// "none". stats is called at every scrape and must be quick.
func (m *Metrics) Volume(policyName string, stats func() Volume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.volumes[m.policyLabelLocked(policyName)] = stats
}

// recordCollector shows how the record of all policies stands.
type recordCollector struct{ m *Metrics }

func bytesWrittenDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_events_bytes_total", "Bytes of events that were written.", nil, nil)
}

func freeDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_events_disk_free_bytes", "What is free in the file system of the events file; 0 if they go elsewhere.", nil, nil)
}

func sizeDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_events_disk_size_bytes", "Size of the file system of the events file; 0 if they go elsewhere.", nil, nil)
}

// Describe implements prometheus.Collector.
func (recordCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{bytesWrittenDesc(), freeDesc(), sizeDesc()} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r recordCollector) Collect(out chan<- prometheus.Metric) {
	r.m.mu.Lock()
	probes := r.m.probes
	r.m.mu.Unlock()
	written := uint64(0)
	if probes.Written != nil {
		written = probes.Written()
	}
	out <- prometheus.MustNewConstMetric(bytesWrittenDesc(), prometheus.CounterValue, float64(written))
	var free, size uint64
	if probes.Room != nil {
		free, size, _ = probes.Room()
	}
	out <- prometheus.MustNewConstMetric(freeDesc(), prometheus.GaugeValue, float64(free))
	out <- prometheus.MustNewConstMetric(sizeDesc(), prometheus.GaugeValue, float64(size))
}

// volumeCollector shows the volume of every policy.
type volumeCollector struct{ m *Metrics }

func summedDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_events_summed_total", "Denials that came too fast for an event each and are summed up.", []string{policyLabel}, nil)
}

func exhaustedDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_events_quota_exhausted", "1 while the policy has written all the events that it may, and is denied everything.", []string{policyLabel}, nil)
}

// Describe implements prometheus.Collector.
func (volumeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- summedDesc()
	out <- exhaustedDesc()
}

// Collect implements prometheus.Collector.
func (v volumeCollector) Collect(out chan<- prometheus.Metric) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	for name, stats := range v.m.volumes {
		now := stats()
		exhausted := 0.
		if now.Exhausted {
			exhausted = 1
		}
		out <- prometheus.MustNewConstMetric(summedDesc(), prometheus.CounterValue, float64(now.Summed), name)
		out <- prometheus.MustNewConstMetric(exhaustedDesc(), prometheus.GaugeValue, exhausted, name)
	}
}

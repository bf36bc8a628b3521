package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of output: the medians of one measurement's rounds for one
// contestant. Units are in the names.
type row struct {
	What   string    `json:"what"`
	Who    string    `json:"who"`
	Rounds int       `json:"rounds"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	CPU    float64   `json:"cpu_us_per_op,omitempty"` // of the proxy; bulk's operation is a megabyte
	P50    float64   `json:"p50_us,omitempty"`
	P99    float64   `json:"p99_us,omitempty"`
	All    []float64 `json:"rounds_values,omitempty"`
}

// ratio compares two contestants: the median over the rounds of their quotient
// in one round.
type ratio struct {
	What    string  `json:"what"` // "ratio"
	Of      string  `json:"of"`
	Who     string  `json:"who"`
	To      string  `json:"to"`
	Median  float64 `json:"median_ratio"`
	CPU     float64 `json:"cpu_ratio,omitempty"`
	AddsP50 float64 `json:"adds_p50_us,omitempty"`
	AddsP99 float64 `json:"adds_p99_us,omitempty"`
}

type report struct {
	all    []*contestant
	cf     config
	done   []measurement
	rounds map[string][]figure // by key
}

func newReport(all []*contestant, cf config) *report {
	return &report{all: all, cf: cf, rounds: make(map[string][]figure)}
}

// of reports who takes part in m. A direct connection has no memory; bare
// speaks no HTTP, and has pipes for two thousand tunnels at most.
func (r *report) of(m measurement) []*contestant {
	var all []*contestant
	for _, c := range r.all {
		if m.once && c.cmd == nil || (m.once || m.http) && c.name == "bare" {
			continue
		}
		all = append(all, c)
	}
	return all
}

func key(m measurement, c *contestant) string { return m.name + " " + c.name }

// turns measures m for all contestants in turns. One round more comes first
// and does not count.
func (r *report) turns(ctx context.Context, b *bench, m measurement, stderr io.Writer) error {
	rounds := r.cf.rounds + 1
	if m.once {
		rounds = 1
	}
	fmt.Fprintf(stderr, "%s ", m.name)
	for i := range rounds {
		for _, c := range r.of(m) {
			f, err := m.run(b, ctx, c)
			if err != nil {
				return err
			}
			if i > 0 || m.once {
				r.rounds[key(m, c)] = append(r.rounds[key(m, c)], f)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		fmt.Fprint(stderr, ".")
	}
	fmt.Fprintln(stderr)
	r.done = append(r.done, m)
	return nil
}

// median of what pick finds in all of fs.
func median(fs []figure, pick func(figure) float64) float64 {
	var all []float64
	for _, f := range fs {
		all = append(all, pick(f))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func value(f figure) float64 { return f.value }
func cpuUS(f figure) float64 { return us(f.cpu) }
func p50US(f figure) float64 { return us(f.p50) }
func p99US(f figure) float64 { return us(f.p99) }

func (r *report) row(m measurement, c *contestant) row {
	fs := r.rounds[key(m, c)]
	line := row{
		What: m.name, Who: c.name, Rounds: len(fs), Unit: m.unit,
		Median: median(fs, value), CPU: median(fs, cpuUS), P50: median(fs, p50US), P99: median(fs, p99US),
	}
	var all []float64
	for _, f := range fs {
		all = append(all, f.value)
	}
	line.Min, line.Max = slices.Min(all), slices.Max(all)
	if r.cf.raw {
		line.All = all
	}
	return line
}

// ratio compares a with b, round by round.
func (r *report) ratio(m measurement, a, b *contestant) ratio {
	as, bs := r.rounds[key(m, a)], r.rounds[key(m, b)]
	var both []figure
	for i := range as {
		f := figure{value: as[i].value / bs[i].value, p50: as[i].p50 - bs[i].p50, p99: as[i].p99 - bs[i].p99}
		both = append(both, f)
	}
	q := ratio{What: "ratio", Of: m.name, Who: a.name, To: b.name, Median: median(both, value)}
	if cost := median(bs, cpuUS); cost > 0 {
		q.CPU = median(as, cpuUS) / cost
	}
	if b.cmd == nil {
		q.AddsP50, q.AddsP99 = median(both, p50US), median(both, p99US)
	}
	return q
}

// print writes JSON rows to stdout and a table to stderr.
func (r *report) print(stdout, stderr io.Writer) error {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	enc := json.NewEncoder(stdout)
	if err := enc.Encode(map[string]any{"what": "machine", "cpus": runtime.NumCPU(), "kernel": strings.TrimSpace(string(kernel)), "go": runtime.Version(), "clients": workers}); err != nil {
		return err
	}
	table := tabwriter.NewWriter(stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\t\tmedian\tof egressd's\tproxy CPU us/op\tp50 us\tp99 us")
	for _, m := range r.done {
		for _, c := range r.of(m) {
			line := r.row(m, c)
			if err := enc.Encode(line); err != nil {
				return err
			}
			share := r.ratio(m, c, r.ours()).Median
			fmt.Fprintf(table, "%s %s\t%s\t%.1f\t%.2f\t%.1f\t%.0f\t%.0f\n", m.name, m.unit, c.name, line.Median, share, line.CPU, line.P50, line.P99)
		}
	}
	for _, m := range r.done {
		for _, c := range r.of(m) {
			if c == r.ours() {
				continue
			}
			if err := enc.Encode(r.ratio(m, r.ours(), c)); err != nil {
				return err
			}
		}
	}
	return table.Flush()
}

// ours is the egressd that is measured.
func (r *report) ours() *contestant {
	return r.all[slices.IndexFunc(r.all, func(c *contestant) bool { return c.name == "egressd" })]
}

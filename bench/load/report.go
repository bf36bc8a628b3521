package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"egressd/bench/contest"
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
	CPUs   []float64 `json:"rounds_cpu_us,omitempty"`
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
	gone   []*contest.Missing
	cf     config
	done   []measurement
	rounds map[string][]figure // by key
	failed map[string]bool     // by key: they do not stand m
}

func newReport(all []*contestant, gone []*contest.Missing, cf config) *report {
	return &report{all: all, gone: gone, cf: cf, rounds: make(map[string][]figure), failed: make(map[string]bool)}
}

// of reports who takes part in m. A direct connection has no memory; bare
// speaks no HTTP, and has pipes for two thousand tunnels at most.
func (r *report) of(m measurement) []*contestant {
	var all []*contestant
	for _, c := range r.all {
		switch {
		case r.failed[key(m, c)], m.once && c.Cmd == nil:
		case (m.once || m.http) && c.Name == "bare":
		case c.HTTPOnly && !m.http, c.OneShot && m.http, m.deny && c.NoPolicy:
		default:
			all = append(all, c)
		}
	}
	return all
}

func key(m measurement, c *contestant) string { return m.name + " " + c.Name }

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
			if err != nil && c.Cmd != nil && !strings.HasPrefix(c.Name, "egressd") && ctx.Err() == nil {
				r.failed[key(m, c)] = true
				why, _, _ := strings.Cut(err.Error(), "\n")
				r.gone = append(r.gone, &contest.Missing{What: "missing", Who: c.Name, Why: m.name + ": " + why})
				continue
			}
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

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func value(f figure) float64 { return f.value }
func cpuUS(f figure) float64 { return us(f.cpu) }
func p50US(f figure) float64 { return us(f.p50) }
func p99US(f figure) float64 { return us(f.p99) }

func (r *report) row(m measurement, c *contestant) row {
	fs := r.rounds[key(m, c)]
	line := row{
		What: m.name, Who: c.Name, Rounds: len(fs), Unit: m.unit,
		Median: contest.Median(fs, value), CPU: contest.Median(fs, cpuUS), P50: contest.Median(fs, p50US), P99: contest.Median(fs, p99US),
	}
	var all []float64
	for _, f := range fs {
		all = append(all, f.value)
	}
	line.Min, line.Max = slices.Min(all), slices.Max(all)
	if r.cf.raw {
		line.All = all
		for _, f := range fs {
			line.CPUs = append(line.CPUs, cpuUS(f))
		}
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
	q := ratio{What: "ratio", Of: m.name, Who: a.Name, To: b.Name, Median: contest.Median(both, value)}
	if cost := contest.Median(bs, cpuUS); cost > 0 {
		q.CPU = contest.Median(as, cpuUS) / cost
	}
	if b.Cmd == nil {
		q.AddsP50, q.AddsP99 = contest.Median(both, p50US), contest.Median(both, p99US)
	}
	return q
}

// print writes JSON rows to stdout and a table to stderr.
func (r *report) print(stdout, stderr io.Writer) error {
	enc := json.NewEncoder(stdout)
	machine := contest.Machine()
	machine["clients"] = workers
	if err := enc.Encode(machine); err != nil {
		return err
	}
	bound := r.bound()
	table := tabwriter.NewWriter(stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t\tmedian\tof %s's\tproxy CPU us/op\tof %[1]s's\tp50 us\tp99 us\n", bound.Name)
	for _, m := range r.done {
		for _, c := range r.of(m) {
			line := r.row(m, c)
			if err := enc.Encode(line); err != nil {
				return err
			}
			share, cost := "-", "-"
			if r.comparable(m) {
				q := r.ratio(m, c, bound)
				share, cost = fmt.Sprintf("%.2f", q.Median), fmt.Sprintf("%.2f", q.CPU)
			}
			fmt.Fprintf(table, "%s %s\t%s\t%.1f\t%s\t%.1f\t%s\t%.0f\t%.0f\n", m.name, m.unit, c.Name, line.Median, share, line.CPU, cost, line.P50, line.P99)
		}
	}
	for _, m := range r.done {
		for _, c := range r.of(m) {
			if c == bound || !r.comparable(m) {
				continue
			}
			if err := enc.Encode(r.ratio(m, c, bound)); err != nil {
				return err
			}
		}
	}
	for _, gone := range r.gone {
		if err := enc.Encode(gone); err != nil {
			return err
		}
		fmt.Fprintf(table, "missing: %s: %s\n", gone.Who, gone.Why)
	}
	return table.Flush()
}

// comparable reports whether m is divided by the bound: memory is not, of which that has next to none.
func (r *report) comparable(m measurement) bool {
	b := r.bound()
	return !m.once && slices.Contains(r.of(m), b)
}

// bound is what all are compared with: the relay in C, or egressd where there is none.
func (r *report) bound() *contestant {
	for _, name := range []string{"relay", "egressd"} {
		if i := slices.IndexFunc(r.all, func(c *contestant) bool { return c.Name == name }); i >= 0 {
			return r.all[i]
		}
	}
	return r.all[0]
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"egressd/bench/contest"
)

// figure is one round of one server.
type figure struct{ perSecond, cpu, lost, wrong float64 }

// row is one line of output: the medians of one measurement's rounds for one server.
type row struct {
	What   string  `json:"what"`
	Who    string  `json:"who"`
	Rounds int     `json:"rounds"`
	Rate   float64 `json:"answers_per_second"`
	CPU    float64 `json:"cpu_s_per_100k"` // of the server
	Lost   float64 `json:"lost_percent"`   // no answer for 100 ms
	Wrong  float64 `json:"wrong_percent"`  // of answers, such as SERVFAIL
}

type report struct {
	rounds  int
	order   []row
	missing []*contest.Missing
	figures map[string][]figure // by what and who
	serial  atomic.Uint64
}

// miss notes who is missing, once.
func (r *report) miss(m *contest.Missing) {
	for _, known := range r.missing {
		if known.Who == m.Who {
			return
		}
	}
	r.missing = append(r.missing, m)
}

// all measures ms for all servers in one mode, in turns.
func (r *report) all(ctx context.Context, c config, mode string, ms []measurement, up *contest.Contestant, dir string, stderr io.Writer) error {
	makers := []struct {
		name string
		cmd  func(port string) (*exec.Cmd, error)
	}{
		{"egressd", func(port string) (*exec.Cmd, error) { return egressd("egressd", c.egressd, mode, port, up.Addr, dir) }},
		{"egressd-other", func(port string) (*exec.Cmd, error) {
			if c.other == "" {
				return nil, nil
			}
			return egressd("egressd-other", c.other, mode, port, up.Addr, dir)
		}},
		{"unbound", func(port string) (*exec.Cmd, error) { return unbound(&c, mode, port, up.Addr, dir) }},
		{"dnsdist", func(port string) (*exec.Cmd, error) { return dnsdist(&c, mode, port, up.Addr, dir) }},
		{"coredns", func(port string) (*exec.Cmd, error) { return coredns(&c, mode, port, up.Addr, dir) }},
		{"dnsmasq", func(port string) (*exec.Cmd, error) { return dnsmasq(&c, mode, port, up.Addr, dir) }},
	}
	var servers []*contest.Contestant
	defer func() {
		for _, s := range servers {
			s.Stop()
		}
	}()
	for _, m := range makers {
		if slices.Contains(strings.Split(c.without, ","), m.name) {
			continue
		}
		port, err := contest.FreePort()
		if err != nil {
			return err
		}
		cmd, err := m.cmd(port)
		if gone, ok := errors.AsType[*contest.Missing](err); ok {
			r.miss(gone)
			continue
		}
		if err != nil {
			return err
		}
		if cmd == nil {
			continue
		}
		s := &contest.Contestant{Name: m.name, Addr: "127.0.0.1:" + port, Cmd: cmd}
		servers = append(servers, s)
		if err := s.Start(dir); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, startPatience)
		err = answers(short, s.Addr, ms[0], &r.serial)
		cancel()
		switch {
		case err == nil:
		case strings.HasPrefix(s.Name, "egressd") || ctx.Err() != nil:
			return fmt.Errorf("%s: %w\n%s", s.Name, err, s.Said())
		default:
			servers = servers[:len(servers)-1]
			s.Stop()
			r.miss(&contest.Missing{What: "missing", Who: s.Name, Why: "it does not serve: " + err.Error()})
		}
	}
	for _, m := range ms {
		if err := r.turns(ctx, c, m, servers, stderr); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) turns(ctx context.Context, c config, m measurement, servers []*contest.Contestant, stderr io.Writer) error {
	fmt.Fprintf(stderr, "%s ", m.name)
	for i := range r.rounds + 1 {
		for _, s := range servers {
			f, err := r.round(ctx, c, m, s)
			if err != nil {
				return err
			}
			if i > 0 {
				r.figures[m.name+" "+s.Name] = append(r.figures[m.name+" "+s.Name], f)
			}
		}
		fmt.Fprint(stderr, ".")
	}
	fmt.Fprintln(stderr)
	for _, s := range servers {
		r.order = append(r.order, row{What: m.name, Who: s.Name, Rounds: r.rounds})
	}
	return nil
}

func (r *report) round(ctx context.Context, c config, m measurement, s *contest.Contestant) (figure, error) {
	before, err := s.CPU()
	if err != nil {
		return figure{}, err
	}
	short, cancel := context.WithTimeout(ctx, c.each)
	defer cancel()
	began := time.Now()
	n, err := ask(short, s.Addr, m, c.window, &r.serial)
	took := time.Since(began)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return figure{}, err
	}
	after, err := s.CPU()
	if err != nil {
		return figure{}, err
	}
	right, wrong := float64(n.right.Load()), float64(n.wrong.Load())
	if right == 0 {
		return figure{}, fmt.Errorf("%s, %s: %.0f right answers and %.0f wrong", m.name, s.Name, right, wrong)
	}
	return figure{
		perSecond: right / took.Seconds(),
		cpu:       (after - before).Seconds() / right * 1e5,
		lost:      100 * float64(n.lost.Load()) / right,
		wrong:     100 * wrong / (right + wrong),
	}, nil
}

// print writes JSON rows to stdout and a table to stderr.
func (r *report) print(stdout, stderr io.Writer) error {
	enc := json.NewEncoder(stdout)
	if err := enc.Encode(contest.Machine()); err != nil {
		return err
	}
	table := tabwriter.NewWriter(stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\t\tkqps\tCPU s per 100k\tlost %\twrong %")
	for _, line := range r.order {
		fs := r.figures[line.What+" "+line.Who]
		line.Rate = contest.Median(fs, func(f figure) float64 { return f.perSecond })
		line.CPU = contest.Median(fs, func(f figure) float64 { return f.cpu })
		line.Lost = contest.Median(fs, func(f figure) float64 { return f.lost })
		line.Wrong = contest.Median(fs, func(f figure) float64 { return f.wrong })
		if err := enc.Encode(line); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.1f\n", line.What, line.Who, line.Rate/1e3, line.CPU, line.Lost, line.Wrong)
	}
	for _, m := range r.missing {
		if err := enc.Encode(m); err != nil {
			return err
		}
		fmt.Fprintf(table, "missing: %s: %s\n", m.Who, m.Why)
	}
	return table.Flush()
}

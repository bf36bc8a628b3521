package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
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
	figures map[string][]figure // by what and who
	serial  atomic.Uint64
}

// all measures ms for all servers in one mode, in turns.
func (r *report) all(ctx context.Context, c config, mode string, ms []measurement, up *contestant, dir string, stderr io.Writer) error {
	makers := []struct {
		name string
		cmd  func(port string) (*exec.Cmd, error)
	}{
		{"egressd", func(port string) (*exec.Cmd, error) { return egressd("egressd", c.egressd, mode, port, up.addr, dir) }},
		{"egressd-other", func(port string) (*exec.Cmd, error) {
			if c.other == "" {
				return nil, nil
			}
			return egressd("egressd-other", c.other, mode, port, up.addr, dir)
		}},
		{"unbound", func(port string) (*exec.Cmd, error) { return unbound(mode, port, up.addr, dir) }},
		{"dnsdist", func(port string) (*exec.Cmd, error) { return dnsdist(mode, port, up.addr, dir) }},
		{"dnsmasq", func(port string) (*exec.Cmd, error) { return dnsmasq(mode, port, up.addr, dir) }},
	}
	var servers []*contestant
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, m := range makers {
		if slices.Contains(strings.Split(c.without, ","), m.name) {
			continue
		}
		port, err := freePort()
		if err != nil {
			return err
		}
		cmd, err := m.cmd(port)
		if err != nil {
			return err
		}
		if cmd == nil {
			continue
		}
		s := &contestant{name: m.name, addr: "127.0.0.1:" + port, cmd: cmd}
		servers = append(servers, s)
		if err := s.start(dir); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, startPatience)
		err = answers(short, s.addr, ms[0], &r.serial)
		cancel()
		if err != nil {
			text, _ := os.ReadFile(s.log) // for the error alone
			return fmt.Errorf("%s: %w\n%s", s.name, err, text)
		}
	}
	for _, m := range ms {
		if err := r.turns(ctx, c, m, servers, stderr); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) turns(ctx context.Context, c config, m measurement, servers []*contestant, stderr io.Writer) error {
	fmt.Fprintf(stderr, "%s ", m.name)
	for i := range r.rounds + 1 {
		for _, s := range servers {
			f, err := r.round(ctx, c, m, s)
			if err != nil {
				return err
			}
			if i > 0 {
				r.figures[m.name+" "+s.name] = append(r.figures[m.name+" "+s.name], f)
			}
		}
		fmt.Fprint(stderr, ".")
	}
	fmt.Fprintln(stderr)
	for _, s := range servers {
		r.order = append(r.order, row{What: m.name, Who: s.name, Rounds: r.rounds})
	}
	return nil
}

func (r *report) round(ctx context.Context, c config, m measurement, s *contestant) (figure, error) {
	before, err := s.cpu()
	if err != nil {
		return figure{}, err
	}
	short, cancel := context.WithTimeout(ctx, c.each)
	defer cancel()
	began := time.Now()
	n, err := ask(short, s.addr, m, c.window, &r.serial)
	took := time.Since(began)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return figure{}, err
	}
	after, err := s.cpu()
	if err != nil {
		return figure{}, err
	}
	right, wrong := float64(n.right.Load()), float64(n.wrong.Load())
	if right == 0 {
		return figure{}, fmt.Errorf("%s, %s: %.0f right answers and %.0f wrong", m.name, s.name, right, wrong)
	}
	return figure{
		perSecond: right / took.Seconds(),
		cpu:       (after - before).Seconds() / right * 1e5,
		lost:      100 * float64(n.lost.Load()) / right,
		wrong:     100 * wrong / (right + wrong),
	}, nil
}

func median(fs []figure, pick func(figure) float64) float64 {
	var all []float64
	for _, f := range fs {
		all = append(all, pick(f))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// print writes JSON rows to stdout and a table to stderr.
func (r *report) print(stdout, stderr io.Writer) error {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	enc := json.NewEncoder(stdout)
	if err := enc.Encode(map[string]any{"what": "machine", "cpus": runtime.NumCPU(), "kernel": strings.TrimSpace(string(kernel)), "go": runtime.Version()}); err != nil {
		return err
	}
	table := tabwriter.NewWriter(stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\t\tkqps\tCPU s per 100k\tlost %\twrong %")
	for _, line := range r.order {
		fs := r.figures[line.What+" "+line.Who]
		line.Rate = median(fs, func(f figure) float64 { return f.perSecond })
		line.CPU = median(fs, func(f figure) float64 { return f.cpu })
		line.Lost = median(fs, func(f figure) float64 { return f.lost })
		line.Wrong = median(fs, func(f figure) float64 { return f.wrong })
		if err := enc.Encode(line); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.1f\n", line.What, line.Who, line.Rate/1e3, line.CPU, line.Lost, line.Wrong)
	}
	return table.Flush()
}

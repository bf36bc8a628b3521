package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// goalAdded is how much later than the first of the others launch may be, in median
// and at best.
const goalAdded = 500 * time.Microsecond

// cost is what one run took.
type cost struct {
	wall time.Duration // from fork to exit
	cpu  time.Duration // of launch and all that it waited for, user and system
}

// rival is one binary in one directory.
type rival struct {
	What    string `json:"what"`
	Dir     string `json:"dir"`
	Runs    int    `json:"runs"`
	Median  int64  `json:"median_us"`
	P95     int64  `json:"p95_us"`
	Min     int64  `json:"min_us"`
	CPU     int64  `json:"cpu_median_us"`
	AddedUS int64  `json:"added_median_us"` // to the first binary in this directory
	AddMin  int64  `json:"added_min_us"`
	AddCPU  int64  `json:"added_cpu_us"`

	binary string
	costs  []cost
}

// against runs the binaries in turns in each directory, and compares them with the
// first. It reports whether the last, which is c.launch, met the goal.
func against(ctx context.Context, c config, stdout, stderr io.Writer) (bool, error) {
	var all []*rival
	for _, dir := range strings.Split(c.dirs, ",") {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return false, err
		}
		for _, binary := range append(strings.Split(c.against, ","), c.launch) {
			path, err := filepath.Abs(binary)
			if err != nil {
				return false, err
			}
			all = append(all, &rival{What: binary, Dir: dir, binary: path})
		}
	}
	for i := range c.n + warmUps {
		for _, r := range all {
			took, err := r.once(ctx)
			if err != nil {
				return false, fmt.Errorf("%s in %s: %w", r.What, r.Dir, err)
			}
			if i >= warmUps {
				r.costs = append(r.costs, took)
			}
		}
	}
	enc, met := json.NewEncoder(stdout), true
	var first *rival
	for _, r := range all {
		r.sum()
		if first == nil || first.Dir != r.Dir {
			first = r
		}
		r.AddedUS, r.AddMin, r.AddCPU = r.Median-first.Median, r.Min-first.Min, r.CPU-first.CPU
		if r.What == c.launch {
			met = met && max(r.AddedUS, r.AddMin) <= goalAdded.Microseconds()
		}
		if err := enc.Encode(r); err != nil {
			return false, err
		}
		fmt.Fprintf(stderr, "%s in %s: median %.1f ms (%+.1f), best %.1f (%+.1f), processor time %.1f (%+.1f)\n", r.What, r.Dir,
			ms(r.Median), ms(r.AddedUS), ms(r.Min), ms(r.AddMin), ms(r.CPU), ms(r.AddCPU))
	}
	return met, nil
}

func ms(us int64) float64 { return float64(us) / 1000 }

func (r *rival) once(ctx context.Context) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binary, "--allow", "x.example.com", "--", "/bin/true")
	cmd.Dir, cmd.Stderr = r.Dir, os.Stderr
	start := time.Now()
	err := cmd.Run()
	took := cost{wall: time.Since(start)}
	if err == nil {
		took.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return took, err
}

// sum fills in r's figures.
func (r *rival) sum() {
	var wall, cpu []time.Duration
	for _, c := range r.costs {
		wall, cpu = append(wall, c.wall), append(cpu, c.cpu)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	r.Runs = len(wall)
	r.Median, r.CPU = wall[len(wall)/2].Microseconds(), cpu[len(cpu)/2].Microseconds()
	r.P95, r.Min = wall[(len(wall)-1)*95/100].Microseconds(), wall[0].Microseconds()
}

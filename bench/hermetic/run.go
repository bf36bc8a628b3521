package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"egressd/bench/install"
)

// Goals.
const (
	perMinute  = 1000
	peakBytes  = 40 << 20
	runTimeout = 30 * time.Second
	warmUps    = 5
)

type config struct {
	n, beside int
	cpu       int
	launch    string
	script    string
	raw       bool
}

// run is main without the process: it reports the exit code, 0 when the goals
// are met, 1 when one is missed or nothing could be measured, 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c config
	flags := flag.NewFlagSet("hermetic", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.n, "n", 1000, "runs, one after the other")
	flags.IntVar(&c.beside, "beside", 50, "then as many runs again, so many at a time; 0: none")
	flags.IntVar(&c.cpu, "cpu", 0, "the processor that everything runs on")
	flags.StringVar(&c.launch, "launch", "", "the launch binary (default: build it from this tree)")
	flags.StringVar(&c.script, "script", "echo hello", "what to run")
	flags.BoolVar(&c.raw, "raw", false, "print every run too")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.n < 1 || c.n > 100_000 || c.beside < 0 || c.beside > 1000 {
		fmt.Fprintln(stderr, "hermetic: -n must be 1 to 100000, -beside 0 to 1000")
		return 2
	}
	met, err := measure(ctx, c, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "hermetic:", err)
		return 1
	}
	if !met {
		return 1
	}
	return 0
}

func measure(ctx context.Context, c config, stdout, stderr io.Writer) (bool, error) {
	dir, err := os.MkdirTemp("", "egressd-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if c.launch == "" {
		if c.launch, err = install.Launch(ctx, dir); err != nil {
			return false, err
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return false, err
	}
	if err := pin(c.cpu); err != nil {
		return false, err
	}
	turns, err := inTurn(ctx, c, work)
	if err != nil {
		return false, err
	}
	crowd, err := sideBySide(ctx, c, work)
	if err != nil {
		return false, err
	}
	return report(c, turns, crowd, stdout, stderr)
}

// one is what one run took.
type one struct {
	wall time.Duration // from fork to exit
	cpu  time.Duration // of launcher and worker
	peak int64         // resident bytes of the larger of both
}

func (c config) once(ctx context.Context, work string) (one, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.launch, "--tier", "hermetic", "--", "sh", "-c", c.script)
	cmd.Dir = work
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := one{wall: time.Since(start)}
	if err != nil {
		return took, fmt.Errorf("%w: %s", err, out)
	}
	took.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	// wait4(2) reports the launcher's peak or that of the largest child that it
	// waited for, whichever is more.
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		took.peak = usage.Maxrss * 1024
	}
	return took, nil
}

func inTurn(ctx context.Context, c config, work string) ([]one, error) {
	var all []one
	for i := range c.n + warmUps {
		took, err := c.once(ctx, work)
		if err != nil {
			return nil, err
		}
		if i >= warmUps {
			all = append(all, took)
		}
	}
	return all, nil
}

// crowd is what many runs at a time took and left.
type crowd struct {
	wall time.Duration
	left []string // in the workspace and in the directory for temporary files
}

func sideBySide(ctx context.Context, c config, work string) (crowd, error) {
	if c.beside == 0 {
		return crowd{}, nil
	}
	before := entries(os.TempDir())
	jobs, failed := make(chan int), make(chan error, c.beside)
	start := time.Now()
	var wg sync.WaitGroup
	for range c.beside {
		wg.Go(func() {
			for range jobs {
				if _, err := c.once(ctx, work); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range c.n {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	took := crowd{wall: time.Since(start), left: entries(work)}
	for _, name := range entries(os.TempDir()) {
		if !slices.Contains(before, name) && strings.Contains(name, "egressd") {
			took.left = append(took.left, name)
		}
	}
	select {
	case err := <-failed:
		return took, err
	default:
		return took, nil
	}
}

func entries(dir string) []string {
	list, _ := os.ReadDir(dir) // none is nothing left
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// report writes JSON rows to stdout and a sentence to stderr.
func report(c config, turns []one, many crowd, stdout, stderr io.Writer) (bool, error) {
	var wall, cpu, total []time.Duration
	var peak int64
	for _, t := range turns {
		wall, cpu = append(wall, t.wall), append(cpu, t.cpu)
		peak = max(peak, t.peak)
	}
	total = slices.Clone(wall)
	slices.Sort(wall)
	slices.Sort(cpu)
	var sum time.Duration
	for _, d := range total {
		sum += d
	}
	minute := float64(len(turns)) / sum.Minutes()
	met := minute >= perMinute && peak < peakBytes && len(many.left) == 0
	row := map[string]any{
		"what": "hermetic", "script": c.script, "runs": len(turns), "go": runtime.Version(),
		"median_us": wall[len(wall)/2].Microseconds(), "p95_us": wall[(len(wall)-1)*95/100].Microseconds(), "min_us": wall[0].Microseconds(),
		"cpu_median_us": cpu[len(cpu)/2].Microseconds(), "runs_per_minute": int(minute), "peak_rss_bytes": peak, "met": met,
	}
	if c.raw {
		var all []int64
		for _, d := range total {
			all = append(all, d.Microseconds())
		}
		row["runs_us"] = all
	}
	enc := json.NewEncoder(stdout)
	err := enc.Encode(row)
	if c.beside > 0 && err == nil {
		err = enc.Encode(map[string]any{"what": "beside", "runs": c.n, "at_a_time": c.beside, "wall_ms": many.wall.Milliseconds(), "left": many.left})
	}
	fmt.Fprintf(stderr, "%d scripts a minute on one processor (goal %d); median %.1f ms; peak memory %.1f MiB (goal below %d)\n",
		int(minute), perMinute, float64(wall[len(wall)/2].Microseconds())/1000, float64(peak)/(1<<20), peakBytes>>20)
	return met, err
}

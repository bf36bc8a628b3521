package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"egressd/bench/install"
)

const (
	goal       = 2.5 // launch's median over bwrap's
	runTimeout = 10 * time.Second
	warmUps    = 3
)

// contestant is one command that is measured.
type contestant struct {
	What string
	argv []string
	runs []time.Duration
}

type config struct {
	n      int
	raw    bool
	launch string
	bwrap  string

	also    []string // other ways to run a program, as NAME=COMMAND
	against string   // other launch binaries, separated by commas; "": measure beside bwrap
	dirs    string   // where they run, separated by commas
}

// run is main without the process: it reports the exit code, 0 when the goal is
// met, 1 when it is missed or nothing could be measured, 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c config
	flags := flag.NewFlagSet("startup", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.n, "n", 40, "runs of each, in turns")
	flags.BoolVar(&c.raw, "raw", false, "print every run too")
	flags.StringVar(&c.launch, "launch", "", "the launch binary (default: build it from this tree)")
	flags.StringVar(&c.bwrap, "bwrap", "bwrap", "the bwrap binary")
	flags.Func("also", "another way to run a program, as `NAME=COMMAND`; may be repeated", func(s string) error {
		if name, argv, ok := strings.Cut(s, "="); !ok || name == "" || len(strings.Fields(argv)) == 0 {
			return errors.New("write NAME=COMMAND")
		}
		c.also = append(c.also, s)
		return nil
	})
	flags.StringVar(&c.against, "against", "", "other launch binaries, as A,B: compare with the first of them, and leave bwrap out")
	flags.StringVar(&c.dirs, "dir", ".", "the directories for -against, as A,B")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.n < 1 || c.n > 10000 {
		fmt.Fprintln(stderr, "startup: -n must be 1 to 10000")
		return 2
	}
	met, err := measure(ctx, c, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "startup:", err)
		return 1
	}
	if !met {
		return 1
	}
	return 0
}

// measure runs every contestant and reports whether the goal was met.
func measure(ctx context.Context, c config, stdout, stderr io.Writer) (bool, error) {
	if c.launch == "" {
		dir, err := os.MkdirTemp("", "egressd-bench-")
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
		if c.launch, err = install.Launch(ctx, dir); err != nil {
			return false, err
		}
	}
	if c.against != "" {
		return against(ctx, c, stdout, stderr)
	}
	floor := &contestant{What: "true", argv: []string{"/bin/true"}}
	ours := &contestant{What: "launch", argv: []string{c.launch, "--", "/bin/true"}}
	theirs := &contestant{What: "bwrap", argv: []string{c.bwrap, "--unshare-all", "--dev-bind", "/", "/", "/bin/true"}}
	all := []*contestant{floor, theirs, ours}
	for _, s := range c.also {
		name, argv, _ := strings.Cut(s, "=")
		all = append(all, &contestant{What: name, argv: append(strings.Fields(argv), "/bin/true")})
	}
	for i := range c.n + warmUps {
		for _, who := range all {
			d, err := once(ctx, who.argv)
			if err != nil {
				return false, fmt.Errorf("%s: %w", who.What, err)
			}
			if i >= warmUps {
				who.runs = append(who.runs, d)
			}
		}
	}
	return report(c, all, stdout, stderr)
}

// once reports the wall time of one run from fork to exit.
func once(ctx context.Context, argv []string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			return 0, fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return 0, err
	}
	return took, nil
}

// row is one line of output. Units are in the names.
type row struct {
	What     string  `json:"what"`
	Runs     int     `json:"runs"`
	MedianUS int64   `json:"median_us"`
	P95US    int64   `json:"p95_us"`
	MinUS    int64   `json:"min_us"`
	RunsUS   []int64 `json:"runs_us,omitempty"`
}

func (c *contestant) row(raw bool) row {
	sorted := slices.Sorted(slices.Values(c.runs))
	r := row{
		What: c.What, Runs: len(sorted),
		MedianUS: sorted[len(sorted)/2].Microseconds(),
		P95US:    sorted[(len(sorted)-1)*95/100].Microseconds(),
		MinUS:    sorted[0].Microseconds(),
	}
	if raw {
		for _, d := range c.runs {
			r.RunsUS = append(r.RunsUS, d.Microseconds())
		}
	}
	return r
}

func who(user string) string {
	if user == "ordinary" {
		return "an ordinary user"
	}
	return user
}

// command is what was run, with the program's bare name.
func command(what string, all []*contestant) string {
	for _, who := range all {
		if who.What == what {
			return strings.Join(append([]string{what}, who.argv[1:]...), " ")
		}
	}
	return what
}

// report writes JSON rows to stdout and one sentence to stderr.
func report(c config, all []*contestant, stdout, stderr io.Writer) (bool, error) {
	enc := json.NewEncoder(stdout)
	user := "ordinary"
	if os.Geteuid() == 0 {
		user = "root"
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown\n")
	}
	if err := enc.Encode(map[string]any{"what": "machine", "cpus": runtime.NumCPU(), "kernel": string(kernel[:len(kernel)-1]), "user": user, "go": runtime.Version()}); err != nil {
		return false, err
	}
	rows := map[string]row{}
	for _, who := range all {
		r := who.row(c.raw)
		rows[who.What] = r
		if err := enc.Encode(r); err != nil {
			return false, err
		}
	}
	ours, theirs := rows["launch"], rows["bwrap"]
	median := float64(ours.MedianUS) / float64(theirs.MedianUS)
	p95 := float64(ours.P95US) / float64(theirs.P95US)
	err = enc.Encode(map[string]any{"what": "ratio", "median_ratio": median, "p95_ratio": p95, "goal": goal, "met": median <= goal})
	fmt.Fprintf(stderr, "%s: %.1f ms\n%s: %.1f ms\nmedians of %d runs in turns, as %s, from fork to exit: %.2f times, goal %.1f\n",
		command("launch", all), float64(ours.MedianUS)/1000, command("bwrap", all), float64(theirs.MedianUS)/1000, c.n, who(user), median, goal)
	return median <= goal, err
}

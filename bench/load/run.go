package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

type config struct {
	rounds  int
	each    time.Duration
	idle    int
	egressd string
	other   string
	without string
	only    string
	raw     bool
}

// run is main without the process: 0 when everything was measured, 1 when
// something failed, 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == bareFlag {
		if err := serveBare(ctx, args[1]); err != nil {
			fmt.Fprintln(stderr, "load:", err)
			return 1
		}
		return 0
	}
	var c config
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement, in turns")
	flags.DurationVar(&c.each, "each", time.Second, "time of one round of one contestant")
	flags.IntVar(&c.idle, "idle", 5000, "idle tunnels; each takes 4 descriptors, 2 of them here")
	flags.StringVar(&c.egressd, "egressd", "", "the egressd binary (default: build it from this tree)")
	flags.StringVar(&c.other, "other", "", "another egressd binary, measured as egressd-other: before a change, say")
	flags.StringVar(&c.without, "without", "", "contestants to leave out: direct, bare, squid, squid-2 (comma list)")
	flags.StringVar(&c.only, "only", "", "measure these alone (comma list of names, default all)")
	flags.BoolVar(&c.raw, "raw", false, "print every round too")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.rounds < 1 || c.rounds > 1000 || c.each <= 0 || c.idle < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "load: -rounds is 1 to 1000, -each and -idle are above zero, and there are no arguments")
		return 2
	}
	if err := measure(ctx, c, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "load:", err)
		return 1
	}
	return 0
}

func measure(ctx context.Context, cf config, stdout, stderr io.Writer) error {
	chosen, err := cf.measurements()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "egressd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec: squid gives root up and reads its configuration
		return err
	}
	o, err := newOrigin()
	if err != nil {
		return err
	}
	defer o.close()
	hello, err := clientHello()
	if err != nil {
		return err
	}
	all, err := cf.contestants(ctx, dir, o)
	if err != nil {
		return err
	}
	for _, c := range all {
		defer c.stop()
		if c.cmd != nil {
			if err := c.launch(ctx, dir); err != nil {
				return err
			}
		}
	}
	b := &bench{o: o, hello: hello, each: cf.each, idle: cf.idle}
	r := newReport(all, cf)
	for _, m := range chosen {
		if err = r.turns(ctx, b, m, stderr); err != nil {
			err = fmt.Errorf("%s: %w", m.name, err)
			break
		}
	}
	return errors.Join(r.print(stdout, stderr), err) // what there is until then is of use
}

func (cf config) measurements() ([]measurement, error) {
	all := measurements()
	if cf.only == "" {
		return all, nil
	}
	var chosen []measurement
	for name := range strings.SplitSeq(cf.only, ",") {
		i := slices.IndexFunc(all, func(m measurement) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (cf config) contestants(ctx context.Context, dir string, o *origin) ([]*contestant, error) {
	without := strings.Split(cf.without, ",")
	var all []*contestant
	var errs []error
	add := func(c *contestant, err error) {
		all, errs = append(all, c), append(errs, err)
	}
	if !slices.Contains(without, "direct") {
		add(&contestant{name: "direct"}, nil)
	}
	if cf.egressd == "" {
		binary, err := build(ctx, dir)
		if err != nil {
			return nil, err
		}
		cf.egressd = binary
	}
	add(egressd("egressd", cf.egressd, dir, o))
	if cf.other != "" {
		add(egressd("egressd-other", cf.other, dir, o))
	}
	if !slices.Contains(without, "bare") {
		add(bare())
	}
	if !slices.Contains(without, "squid") {
		add(squid(dir, 1))
	}
	if !slices.Contains(without, "squid-2") {
		add(squid(dir, 2))
	}
	return all, errors.Join(errs...)
}

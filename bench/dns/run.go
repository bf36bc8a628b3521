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

	"egressd/bench/contest"
)

type config struct {
	rounds  int
	each    time.Duration
	egressd string
	other   string
	peers   string
	without string
	only    string
	window  int
}

// upstreamFlag makes this program the DNS server that the others ask.
const upstreamFlag = "-be-the-upstream"

// run is main without the process: 0 when everything was measured, 1 when
// something failed, 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == upstreamFlag {
		if err := serveUpstream(ctx, args[1]); err != nil {
			fmt.Fprintln(stderr, "dns:", err)
			return 1
		}
		return 0
	}
	var c config
	flags := flag.NewFlagSet("dns", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement, in turns; one more comes first and does not count")
	flags.DurationVar(&c.each, "each", time.Second, "time of one round of one server")
	flags.StringVar(&c.egressd, "egressd", "", "the egressd binary (default: build it from this tree)")
	flags.StringVar(&c.other, "other", "", "another egressd binary, measured as egressd-other: before a change, say")
	flags.StringVar(&c.peers, "peers", "", "a `directory` with programs of servers, looked for there first")
	flags.StringVar(&c.without, "without", "", "servers to leave out (comma list); those that are not installed are named as missing")
	flags.StringVar(&c.only, "only", "", "measure these alone (comma list of synthetic, cached, refused, forwarded)")
	flags.IntVar(&c.window, "window", 24, "questions of one socket that wait for their answers, of 8 sockets; egressd leaves one client 256 look-ups")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.rounds < 1 || c.each <= 0 || c.window < 1 || c.window > maxWindow || flags.NArg() > 0 {
		fmt.Fprintf(stderr, "dns: -rounds and -each are above zero, -window is 1 to %d, and there are no arguments\n", maxWindow)
		return 2
	}
	if err := measure(ctx, c, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "dns:", err)
		return 1
	}
	return 0
}

// measurement is one kind of question.
type measurement struct {
	name    string
	mode    string // of the contestants: how they are set up
	unique  bool   // a name that nobody has asked for yet, each time
	suffix  string // of the names
	rcode   byte   // of a right answer
	answers bool   // a right answer has an address
}

var measurements = []measurement{
	{name: "synthetic", mode: "own", suffix: "allowed.test", answers: true},
	{name: "cached", mode: "forward", suffix: "allowed.test", answers: true},
	{name: "refused", mode: "own", suffix: "denied.test", rcode: 3},
	{name: "forwarded", mode: "forward", suffix: "fresh.test", unique: true, answers: true},
}

func (c *config) measurements() ([]measurement, error) {
	if c.only == "" {
		return measurements, nil
	}
	var chosen []measurement
	for name := range strings.SplitSeq(c.only, ",") {
		i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no such measurement", name)
		}
		chosen = append(chosen, measurements[i])
	}
	return chosen, nil
}

func measure(ctx context.Context, c config, stdout, stderr io.Writer) error {
	chosen, err := c.measurements()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "egressd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec: servers give root up and read their configuration
		return err
	}
	if c.egressd == "" {
		if c.egressd, err = contest.Egressd(ctx, dir); err != nil {
			return err
		}
	}
	up, err := startUpstream(ctx, dir)
	if err != nil {
		return err
	}
	defer up.Stop()
	r := &report{rounds: c.rounds, figures: make(map[string][]figure)}
	for _, mode := range []string{"own", "forward"} {
		var ms []measurement
		for _, m := range chosen {
			if m.mode == mode {
				ms = append(ms, m)
			}
		}
		if len(ms) > 0 {
			err = errors.Join(err, r.all(ctx, c, mode, ms, up, dir, stderr))
		}
	}
	if err != nil {
		return err
	}
	return r.print(stdout, stderr)
}

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
	idle    int
	egressd string
	other   string
	peers   string
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
	flags.StringVar(&c.peers, "peers", "", "a `directory` with programs of peers, looked for there first")
	flags.StringVar(&c.without, "without", "", "contestants to leave out (comma list of direct, relay, bare, tinyproxy, squid, squid-2, haproxy, smokescreen, goproxy)")
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
	all, missing, err := cf.contestants(ctx, dir, o)
	for _, c := range all {
		defer c.Stop()
	}
	if err != nil {
		return err
	}
	b := &bench{o: o, hello: hello, each: cf.each, idle: cf.idle}
	r := newReport(all, missing, cf)
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

// contestants starts all that are not left out. What cannot take part is missing, which
// the output says.
func (cf config) contestants(ctx context.Context, dir string, o *origin) (all []*contestant, missing []*contest.Missing, err error) {
	without := strings.Split(cf.without, ",")
	if !slices.Contains(without, "direct") {
		all = append(all, &contestant{contest.Contestant{Name: "direct", NoPolicy: true}})
	}
	if cf.egressd == "" {
		if cf.egressd, err = contest.Egressd(ctx, dir); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range peers(&cf) {
		if slices.Contains(without, p.name) {
			continue
		}
		c, err := p.make(&cf, dir, o)
		if gone, ok := errors.AsType[*contest.Missing](err); ok {
			gone.Who = p.name
			missing = append(missing, gone)
			continue
		}
		if err != nil {
			return all, nil, fmt.Errorf("%s: %w", p.name, err)
		}
		err = c.Start(dir)
		all = append(all, c)
		if err = errors.Join(err, c.Listening(ctx)); err == nil {
			err = c.serves(ctx, o)
		}
		if err == nil {
			continue
		}
		if strings.HasPrefix(p.name, "egressd") {
			return all, nil, err
		}
		c.Stop()
		all = all[:len(all)-1]
		missing = append(missing, &contest.Missing{What: "missing", Who: p.name, Why: "it does not serve: " + err.Error()})
	}
	return all, missing, nil
}

// serves tries c once.
func (c *contestant) serves(ctx context.Context, o *origin) error {
	if c.HTTPOnly {
		g, err := c.getter(ctx, o.http.Addr().String())
		if err != nil {
			return err
		}
		defer g.conn.Close()
		return g.get()
	}
	return c.setUp(ctx, o.answers.Addr().String(), []byte("x"))
}

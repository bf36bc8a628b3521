// Run measures egressd and launch beside everything that does a part of their work, on
// this machine, with one command:
//
//	go run ./bench/run                  # as root, on Debian, nothing else running: half an hour
//	go run ./bench/run -rounds 3 -each 300ms -page
//
// It installs the peers, takes a network namespace of its own, has bench/load, bench/dns,
// bench/startup and bench/lists measure all in turns, and prints tables; figures.json, and
// charts with -page, hold the same. See bench/README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// config is what the flags say.
type config struct {
	rounds int
	each   time.Duration
	peers  string
	out    string
	page   bool
	keep   bool   // install nothing
	from   string // figures of another run
	inside string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	var c config
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement, in turns")
	flags.DurationVar(&c.each, "each", 700*time.Millisecond, "time of one round of one contestant")
	flags.StringVar(&c.peers, "peers", filepath.Join(cache, "egressd-bench"), "the `directory` for programs of peers")
	flags.StringVar(&c.out, "out", "figures.json", "the `file` for the figures")
	flags.BoolVar(&c.page, "page", false, "put tables and charts into docs/performance.md and docs/performance")
	flags.BoolVar(&c.keep, "no-install", false, "take the peers that are there")
	flags.StringVar(&c.from, "from", "", "measure nothing: take the figures in a `file`")
	flags.StringVar(&c.inside, "inside", "", "what the program tells itself: the `directory` with what it has built")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.rounds < 1 || c.each <= 0 || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "run: -rounds and -each are above zero, and there are no arguments")
		return 2
	}
	do := outside
	switch {
	case c.inside != "":
		do = inside
	case c.from != "":
		do = again
	}
	if err := do(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		return 1
	}
	return 0
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "== "+format+"\n", args...) }

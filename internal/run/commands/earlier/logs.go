// Package earlier is the commands about runs that are over, or go on elsewhere: logs.
//
//	commands = append(commands, earlier.Commands(l)...)
package earlier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/journal"
	"egressd/internal/run/live"
	"egressd/internal/run/summary"
)

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands lists the commands.
func Commands(l *run.Launcher) []cli.Command {
	c := launcher{l}
	return []cli.Command{
		{Name: "logs", Run: c.logs, Flags: func() *flag.FlagSet { return new(logsOptions).flags() }, Words: func() []string { return []string{journal.Last} }},
	}
}

// maxListed is how many runs launch logs lists without --all.
const maxListed = 20

// logsOptions are those of launch logs.
type logsOptions struct {
	follow, events, json, all bool
	color                     cli.ColorMode
}

func (o *logsOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("logs", flag.ContinueOnError)
	fs.BoolVar(&o.follow, "follow", false, "print the decisions of the run as they are made, until it is over")
	fs.BoolVar(&o.events, "events", false, "print the events of the run, in JSON Lines")
	fs.BoolVar(&o.json, "json", false, "print the list, or what is known of the run, in JSON")
	fs.BoolVar(&o.all, "all", false, "list all runs on record")
	fs.Var(&o.color, "color", "colour the text: `WHEN` is auto, always or never")
	return fs
}

// logs lists the last runs, or says what one of them was allowed and refused.
func (l launcher) logs(args []string) int {
	var o logsOptions
	fs := o.flags()
	word := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // also before the flags
		word, args = args[0], args[1:]
	}
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if word == "" && fs.NArg() == 1 {
		word = fs.Arg(0)
	} else if fs.NArg() > 0 {
		return l.Usage(errors.New("logs takes one RUN: launch logs lists them, last is the newest"))
	}
	if o.follow && (o.events || o.json) || o.events && o.json {
		return l.Usage(errors.New("--follow, --events and --json exclude each other"))
	}
	if word == "" && (o.follow || o.events) {
		word = journal.Last
	}
	store, err := l.Runs()
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if word == "" {
		return l.listRuns(store, o)
	}
	r, err := store.Find(word)
	if err == nil {
		err = l.showRun(r, o)
	}
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

// listRuns lists the runs, the newest first.
func (l launcher) listRuns(store journal.Store, o logsOptions) int {
	runs, err := store.List()
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if o.json {
		list := make([]shownRun, 0, len(runs))
		for _, r := range runs {
			list = append(list, shownRun{Head: r.Head, State: state(r)})
		}
		return l.PrintJSON(list)
	}
	if len(runs) == 0 {
		return l.Print("no run is on record yet\n")
	}
	more := 0
	if !o.all && len(runs) > maxListed {
		more = len(runs) - maxListed
		runs = runs[:maxListed]
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "RUN\tSTARTED\tTOOK\tEXIT\tALLOWED\tBLOCKED\tPROGRAM\tDIRECTORY")
	for _, r := range runs {
		took, exit, allowed, blocked := state(r), "", "", ""
		if e := r.Ending; e != nil {
			took, exit = tookText(e), fmt.Sprint(e.ExitCode)
			allowed, blocked = fmt.Sprint(e.Allowed), fmt.Sprint(e.Blocked)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Safe(r.ID), r.Started.Local().Format(time.DateTime),
			took, exit, allowed, blocked, cli.Safe(r.Program), cli.Safe(r.Directory))
	}
	_ = w.Flush() // to memory
	if more > 0 {
		fmt.Fprintf(&b, "and %d more: launch logs --all\n", more)
	}
	return l.Print(b.String())
}

// shownRun is a run in JSON.
type shownRun struct {
	journal.Head
	State   string          `json:"state"`
	Summary *summary.Report `json:"summary,omitempty"` // of one run, not in a list
}

// Words for how a run is.
const (
	stateGoing  = "running"
	stateEnded  = "ended"
	stateKilled = "killed" // launch was
)

func state(r journal.Run) string {
	switch {
	case r.Ending != nil:
		return stateEnded
	case r.Going:
		return stateGoing
	}
	return stateKilled
}

func tookText(e *journal.Ending) string {
	d := time.Duration(e.DurationMS) * time.Millisecond
	if d > time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// showRun prints one run.
func (l launcher) showRun(r journal.Run, o logsOptions) error {
	switch {
	case o.json:
		totals, err := totalsOf(r)
		if err != nil {
			return err
		}
		report := totals.Report()
		if l.PrintJSON(shownRun{Head: r.Head, State: state(r), Summary: &report}) != cli.ExitOK {
			return errors.New("the answer was not printed")
		}
		return nil
	case o.events:
		return r.Each(func(line []byte) error { return l.printLine(string(line)) })
	}
	width, _, err := term.GetSize(int(l.Stdout.Fd()))
	paint := l.Paint(o.color, err == nil)
	if o.follow {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := r.Follow(ctx, l.decisions(paint)); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	how := state(r)
	if e := r.Ending; e != nil {
		how = fmt.Sprintf("took %s, exit code %d", tookText(e), e.ExitCode)
	}
	if err := l.printLine(fmt.Sprintf("run %s: %s in %s\n%s, %s", cli.Safe(r.ID), cli.Safe(r.Program), cli.Safe(r.Directory),
		r.Started.Local().Format(time.DateTime), how)); err != nil {
		return err
	}
	if e := r.Ending; e != nil && e.Error != "" {
		if err := l.printLine(cli.Safe(e.Error)); err != nil {
			return err
		}
	}
	totals, err := totalsOf(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	_ = totals.Write(&b, summary.Style{Paint: paint, Width: max(width, 0)}) // to memory
	b.WriteString("decisions:\n")
	if err := l.printLine(strings.TrimSuffix(b.String(), "\n")); err != nil {
		return err
	}
	if err := r.Each(l.decisions(paint)); err != nil {
		return err
	}
	if e := r.Ending; e != nil && e.Lost > 0 {
		return l.printLine(fmt.Sprintf("%d events more found no room in the record", e.Lost))
	}
	return nil
}

// totalsOf adds up what is on record of r.
func totalsOf(r journal.Run) (*summary.Collector, error) {
	totals := new(summary.Collector)
	err := r.Each(func(line []byte) error {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		return totals.Emit(e)
	})
	return totals, err
}

// decisions prints a line for each event that decides something.
func (l launcher) decisions(paint cli.Paint) func([]byte) error {
	return func(data []byte) error {
		var e event.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		if line := live.Line(&e, paint); line != "" {
			return l.printLine(line)
		}
		return nil
	}
}

func (l launcher) printLine(text string) error {
	_, err := fmt.Fprintln(l.Stdout, text)
	return err
}

// Package inside is the commands for the program in a run, or its agent: why, guide and mcp.
//
//	commands = append(commands, inside.Commands(l)...)
package inside

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/run"
	"egressd/internal/run/journal"
	"egressd/internal/run/why"
	"egressd/policy"
	"egressd/sandbox"
)

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands lists the commands.
func Commands(l *run.Launcher) []cli.Command {
	c := launcher{l}
	return []cli.Command{
		{Name: "why", Run: c.why, Flags: func() *flag.FlagSet { return new(whyOptions).flags() }},
		{Name: "guide", Run: c.guide, Flags: func() *flag.FlagSet { return new(guideOptions).flags() }},
		{Name: "mcp", Run: c.mcp, Flags: func() *flag.FlagSet { return new(mcpOptions).flags() }},
	}
}

// askTimeout is how long a question to the gate may take: with --approve, a person
// answers it.
const askTimeout = 3 * time.Minute

// whyOptions are those of launch why.
type whyOptions struct{ events string }

func (o *whyOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("why", flag.ContinueOnError)
	fs.StringVar(&o.events, "events", "", "read what the last run was refused from this events `FILE`, instead of the record of launch logs")
	return fs
}

// why says whether a destination is allowed, and why not: inside a run by asking
// its gate, outside from the record of the last run. Exit codes as of explain.
func (l launcher) why(args []string) int {
	var o whyOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("why needs one HOST, HOST:PORT or URL"))
	}
	t, err := explain.Parse(fs.Arg(0), "")
	if err != nil {
		return l.Usage(err)
	}
	var a why.Answer
	switch {
	case o.events == "" && l.Getenv(sandbox.Marker) != "":
		a, err = l.askGate(t)
	default:
		if _, err := policy.ParseHost(fs.Arg(0)); err == nil {
			t.Port = 0 // only the host is named: any port
		}
		a, err = l.lookBack(o.events, t)
	}
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if code := l.Print(a.Text); code != cli.ExitOK || a.Allowed {
		return code
	}
	return cli.ExitNo
}

// askGate asks the gate around this process.
func (l launcher) askGate(t explain.Target) (why.Answer, error) {
	value := l.Getenv("HTTPS_PROXY")
	if value == "" {
		return why.Answer{}, errors.New("HTTPS_PROXY is not set: it says where the gate of this run is")
	}
	proxy, err := why.Proxy(value)
	if err != nil {
		return why.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return why.Ask(ctx, proxy, t.Host, t.Port)
}

// lookBack looks into the events file name, or into the record of the last run for "".
func (l launcher) lookBack(name string, t explain.Target) (why.Answer, error) {
	f, err := l.lastEvents(name)
	if err != nil {
		return why.Answer{}, err
	}
	defer f.Close()
	a, err := why.Look(f, t.Host, t.Port)
	if err != nil {
		err = fmt.Errorf("%s: %w", cli.Safe(f.Name()), err)
	}
	return a, err
}

// lastEvents opens the events file name, or the record of the last run for "".
func (l launcher) lastEvents(name string) (*os.File, error) {
	if name != "" {
		return os.Open(name)
	}
	store, err := l.Runs()
	if err != nil {
		return nil, err
	}
	r, err := store.Find(journal.Last)
	if err != nil {
		return nil, fmt.Errorf("what the last run was refused: %w", err)
	}
	return r.Events()
}

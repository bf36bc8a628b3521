package inside

import (
	"context"
	"errors"
	"flag"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/run/mcp"
	"egressd/internal/run/why"
	"egressd/policy"
	"egressd/sandbox"
)

// mcpOptions are those of launch mcp.
type mcpOptions struct{ events string }

func (o *mcpOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("mcp", flag.ContinueOnError)
	fs.StringVar(&o.events, "events", "", "list what the last run in this events `FILE` was refused; outside of a run, without it, what the last run on record was")
	return fs
}

// mcp answers an agent that speaks the Model Context Protocol on the standard streams.
func (l launcher) mcp(args []string) int {
	var o mcpOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return l.Usage(errors.New("mcp takes no arguments: an agent starts it and speaks to it"))
	}
	s := mcp.Server{Version: cli.Version(), Guide: guideText, Ask: l.askFor}
	if o.events != "" || l.Getenv(sandbox.Marker) == "" {
		s.Denials = func() (string, error) {
			f, err := l.lastEvents(o.events)
			if err != nil {
				return "", err
			}
			defer f.Close()
			return why.List(f)
		}
	}
	if err := s.Serve(context.Background(), l.Stdin, l.Stdout); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

// askFor asks the gate for an agent.
func (l launcher) askFor(_ context.Context, host policy.Host, port uint16) (why.Answer, error) {
	if l.Getenv(sandbox.Marker) == "" {
		return why.Answer{}, errors.New("this server does not run inside a run of launch, so there is no gate to ask")
	}
	return l.askGate(explain.Target{Host: host, Port: port})
}

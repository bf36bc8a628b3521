package main

import (
	"flag"

	"egressd/internal/cli"
	"egressd/sandbox/hermetic/inside"
	"egressd/sandbox/vercel/fake/machine"
)

// inner runs this program as what it is inside a sandbox: the hermetic tier's
// worker, or the agent of the double. ok is false for a launcher.
func inner(args []string) (code int, ok bool) {
	switch {
	case machine.Agent(args):
		return 0, true
	case inside.IsWorker(args):
		return inside.Run(nil), true
	}
	return 0, false
}

// developing lists the command for work on a tier without its service.
func (l *launcher) developing() []cli.Command {
	return []cli.Command{{
		Name: "dev", Run: l.dev,
		Flags: func() *flag.FlagSet { return new(devOptions).flags() }, Words: func() []string { return []string{"vercel-api"} },
	}}
}

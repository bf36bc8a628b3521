//go:build !small

package main

import (
	"flag"

	"egressd/internal/cli"
	"egressd/sandbox/hermetic/inside"
	"egressd/sandbox/vercel/fake/machine"
)

// inner runs this program as what it is inside: the hermetic tier's worker, or
// the agent in a sandbox of the double. ok is false for a launcher.
func inner(args []string) (code int, ok bool) {
	switch {
	case machine.Agent(args):
		return 0, true
	case inside.IsWorker(args):
		return inside.Run(nil), true
	}
	return 0, false
}

// hasWorker says that this build holds the hermetic tier's shell and commands.
const hasWorker = true

// developing is the command for work against a tier without its service.
func (l *launcher) developing() []cli.Command {
	return []cli.Command{{
		Name: "dev", Run: l.dev,
		Flags: func() *flag.FlagSet { return new(devOptions).flags() }, Words: func() []string { return []string{"vercel-api"} },
	}}
}

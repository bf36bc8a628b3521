package main

import (
	_ "embed"
	"flag"
	"slices"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/commands/dev"
	"egressd/internal/run/commands/earlier"
	"egressd/internal/run/commands/evidence"
	"egressd/internal/run/commands/inside"
	"egressd/internal/run/commands/named"
	"egressd/internal/run/commands/orders"
	"egressd/internal/run/commands/rules"
	"egressd/internal/run/commands/tree"
	"egressd/internal/run/doctor"
)

//go:embed help.txt
var longHelp string

const shortHelp = `launch runs a program behind a gate that lets out only what you allow.

  launch --allow api.example.com -- claude -p "fix the tests"
  launch --preset npm --allow github.com:22,443 -- npm test

See "launch help" for every flag, "launch demo" to watch it work, "launch logs" for
what earlier runs were allowed and refused.
`

// commands lists the commands: those of the launcher itself, each in a file of its own, and those of the rooms.
func (l *launcher) commands() []cli.Command {
	own := []cli.Command{
		{Name: "help", Run: l.help},
		{Name: "-h", Run: l.help},
		{Name: "-help", Run: l.help},
		{Name: "--help", Run: l.help},
		{Name: "apply", Run: l.apply, Flags: func() *flag.FlagSet { return new(applyOptions).flags() }},
		{Name: "doctor", Run: l.doctor, Flags: func() *flag.FlagSet { return doctorFlags(new(doctor.Output)) }},
		{Name: "demo", Run: l.demo},
		{Name: "completion", Run: l.completion},
		{Name: "version", Run: l.PrintVersion},
		{Name: "--version", Run: l.PrintVersion},
	}
	return slices.Concat(rules.Commands(&l.Launcher), inside.Commands(&l.Launcher), earlier.Commands(&l.Launcher), evidence.Commands(&l.Launcher), own, named.Commands(&l.Launcher), tree.Commands(&l.Launcher), orders.Commands(&l.Launcher), dev.Commands(&l.Launcher))
}

func (l *launcher) help([]string) int { return l.Print(longHelp) }

func (l *launcher) completion(args []string) int {
	return l.PrintCompletion(args, new(run.Options).Flags(), l.commands(), true)
}

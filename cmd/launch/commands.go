package main

import (
	_ "embed"
	"flag"

	"egressd/internal/cli"
	"egressd/internal/run"
)

//go:embed help.txt
var longHelp string

const shortHelp = `launch runs a program behind a gate that lets out only what you allow.

  launch --allow api.example.com -- claude -p "fix the tests"
  launch --preset npm --allow github.com:22,443 -- npm test

See "launch help" for every flag, "launch demo" to watch it work.
`

// commands lists the commands, each in a file of its own.
func (l *launcher) commands() []cli.Command {
	return append([]cli.Command{
		{Name: "help", Run: l.help},
		{Name: "-h", Run: l.help},
		{Name: "-help", Run: l.help},
		{Name: "--help", Run: l.help},
		{Name: "explain", Run: l.explain, Flags: func() *flag.FlagSet { return new(explainOptions).flags() }},
		{Name: "why", Run: l.why, Flags: func() *flag.FlagSet { return new(whyOptions).flags() }},
		{Name: "guide", Run: l.guide, Flags: func() *flag.FlagSet { return new(guideOptions).flags() }},
		{Name: "mcp", Run: l.mcp, Flags: func() *flag.FlagSet { return new(mcpOptions).flags() }},
		{Name: "check", Run: l.check},
		{Name: "trust", Run: l.trust, Flags: func() *flag.FlagSet { return new(trustOptions).flags() }},
		{Name: "apply", Run: l.apply, Flags: func() *flag.FlagSet { return new(applyOptions).flags() }},
		{Name: "doctor", Run: l.doctor},
		{Name: "presets", Run: l.presets},
		{Name: "verify", Run: l.verify, Flags: func() *flag.FlagSet { return new(verifyOptions).flags() }},
		{Name: "demo", Run: l.demo},
		{Name: "sandbox", Run: l.sandbox, Flags: sandboxFlags, Words: sandboxNames},
		{Name: "completion", Run: l.completion},
		{Name: "version", Run: l.PrintVersion},
		{Name: "--version", Run: l.PrintVersion},
	}, l.developing()...)
}

func (l *launcher) help([]string) int { return l.Print(longHelp) }

func (l *launcher) completion(args []string) int {
	return l.PrintCompletion(args, new(run.Options).Flags(), l.commands(), true)
}

package main

import (
	_ "embed"
	"flag"
	"fmt"
	"strings"

	"egressd/internal/cli"
)

//go:embed help.txt
var longHelp string

const shortHelp = `egressd lets programs out to what you allow, and to nothing else.

  egressd --policy policy.yaml
  egressd --allow api.example.com --listen 127.0.0.1:3128

See "egressd help" for every flag and command.
`

// commands lists the commands, each in a file of its own. Each of their flags is
// an EGRESSD_ variable as well. p may be nil if none is run.
func (p *program) commands() []cli.Command {
	return []cli.Command{
		{Name: "check", Run: p.check, Flags: func() *flag.FlagSet { return new(options).flags() }},
		{Name: "explain", Run: p.explain, Flags: func() *flag.FlagSet { return new(explainOptions).flags() }},
		{Name: "healthcheck", Run: p.healthcheck, Flags: func() *flag.FlagSet { return new(healthOptions).flags() }},
		{Name: "presets", Run: p.presets},
		{Name: "completion", Run: p.completion},
		{Name: "version", Run: p.version},
		{Name: "--version", Run: p.version},
		{Name: "capture", Run: p.capture, Flags: func() *flag.FlagSet { return new(captureOptions).flags() }},
		{Name: "verify", Run: p.verify, Flags: func() *flag.FlagSet { return new(verifyOptions).flags() }},
		{Name: "ship", Run: p.ship, Flags: func() *flag.FlagSet { return new(shipOptions).flags() }},
		{Name: "help", Run: p.help},
		{Name: "--help", Run: p.help},
		{Name: "-help", Run: p.help},
		{Name: "-h", Run: p.shortHelp},
	}
}

// parse reads the flags of a command, and from the environment those that args do
// not set. If done is true, code is the command's result.
func (p *program) parse(fs *flag.FlagSet, args []string) (code int, done bool) {
	if code, done = p.Parse(fs, args); done {
		return code, done
	}
	var err error
	if p.variables, err = fromEnvironment(fs, p.Environ); err != nil {
		return p.Usage(err), true
	}
	return cli.ExitOK, false
}

// helpOf reports the help of the command whose flags fs holds: what the long help
// says of that command, and its flags.
func helpOf(fs *flag.FlagSet) string {
	about := ""
	for line := range strings.Lines(longHelp) {
		if strings.HasPrefix(line, "  egressd "+fs.Name()+" ") || about != "" && strings.HasPrefix(line, strings.Repeat(" ", 26)) {
			about += line
		} else if about != "" {
			break
		}
	}
	if about == "" {
		return longHelp
	}
	var flags strings.Builder
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		name := strings.TrimRight("--"+f.Name+" "+value, " ")
		if len(name) > 22 {
			name += "\n" + strings.Repeat(" ", 24)
		}
		fmt.Fprintf(&flags, "  %-22s  %s\n", name, usage)
	})
	if flags.Len() == 0 {
		return about
	}
	return about + "\nFlags, each an EGRESSD_ variable as well unless it says \"typed\"\n" + flags.String()
}

// help prints the long help, or that of the command that args name.
func (p *program) help(args []string) int {
	if len(args) == 0 {
		return p.Print(longHelp)
	}
	c, ok := cli.Find(p.commands(), args[0])
	switch {
	case !ok || len(args) > 1:
		return p.Usage(fmt.Errorf("there is no command %q to help with", strings.Join(args, " ")))
	case c.Flags != nil:
		return p.Print(helpOf(c.Flags()))
	}
	return p.Print(helpOf(flag.NewFlagSet(c.Name, flag.ContinueOnError)))
}

func (p *program) shortHelp([]string) int { return p.Print(shortHelp) }

func (p *program) version(args []string) int {
	if cli.WantsHelp(args) {
		return p.help([]string{"version"})
	}
	return p.PrintVersion(args)
}

func (p *program) completion(args []string) int {
	if cli.WantsHelp(args) {
		return p.help([]string{"completion"})
	}
	return p.PrintCompletion(args, new(options).flags(), p.commands(), false)
}

package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"strings"
)

//go:embed help.txt
var longHelp string

const shortHelp = `egressd lets programs out to what you allow, and to nothing else.

  egressd --policy policy.yaml
  egressd --allow api.example.com --listen 127.0.0.1:3128

See "egressd help" for every flag and command.
`

// command is one subcommand, in a file of its own.
type command struct {
	name string
	run  func(p *program, args []string) int
	fs   func() *flag.FlagSet // its flags, each an EGRESSD_ variable as well; nil: none
}

func commands() []command {
	return []command{
		{"check", (*program).check, func() *flag.FlagSet { return new(options).flags() }},
		{"explain", (*program).explain, func() *flag.FlagSet { return new(explainOptions).flags() }},
		{"healthcheck", (*program).healthcheck, func() *flag.FlagSet { return new(healthOptions).flags() }},
		{"presets", (*program).presets, nil},
		{"completion", (*program).completion, nil},
		{"version", (*program).version, nil},
		{"--version", (*program).version, nil},
		{"capture", (*program).capture, func() *flag.FlagSet { return new(captureOptions).flags() }},
		{"verify", (*program).verify, func() *flag.FlagSet { return new(verifyOptions).flags() }},
		{"help", (*program).help, nil},
		{"--help", (*program).help, nil},
		{"-help", (*program).help, nil},
		{"-h", (*program).shortHelp, nil},
	}
}

// dropStandardLog silences package log, which nothing of ours uses: net/http
// writes there what an origin sent.
func dropStandardLog() { log.SetOutput(io.Discard) }

// say prints on the standard error; nothing can be done when that fails.
func (p *program) say(format string, args ...any) { _, _ = fmt.Fprintf(p.stderr, format, args...) }

// fail prints err as egressd's own words and reports code.
func (p *program) fail(code int, err error) int {
	p.say("egressd: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	return code
}

// print writes an answer on the standard output.
func (p *program) print(text string) int {
	if _, err := io.WriteString(p.stdout, text); err != nil {
		return p.fail(exitNo, err)
	}
	return exitOK
}

// parse reads a command's flags, and from the environment those that args do
// not set. done means that code is the answer.
func (p *program) parse(fs *flag.FlagSet, args []string) (code int, done bool) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return p.print(helpOf(fs)), true
	case err != nil:
		return p.usage(err), true
	}
	if p.variables, err = fromEnvironment(fs, p.environ); err != nil {
		return p.usage(err), true
	}
	return exitOK, false
}

// usage reports a misuse. The flag package spells flags with one dash.
func (p *program) usage(err error) int {
	text := strings.NewReplacer("flag provided but not defined: -", "there is no flag --", " for flag -", " for --",
		"flag needs an argument: -", "a value is missing after --").Replace(err.Error())
	return p.fail(exitUsage, errors.New(text+"\nsee egressd help"))
}

// helpOf is the help of the command whose flags fs holds: the daemon's help, as far
// as it speaks of that command, and its flags.
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
	var b strings.Builder
	b.WriteString(about)
	if flagless(fs) {
		return about
	}
	b.WriteString("\nFlags, each an EGRESSD_ variable as well\n")
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		name := strings.TrimRight("--"+f.Name+" "+value, " ")
		if len(name) > 22 {
			name += "\n" + strings.Repeat(" ", 24)
		}
		fmt.Fprintf(&b, "  %-22s  %s\n", name, usage)
	})
	return b.String()
}

func flagless(fs *flag.FlagSet) bool {
	none := true
	fs.VisitAll(func(*flag.Flag) { none = false })
	return none
}

// help prints the whole help, or that of the command that args name.
func (p *program) help(args []string) int {
	if len(args) == 0 {
		return p.print(longHelp)
	}
	for _, c := range commands() {
		if c.name != args[0] || len(args) > 1 {
			continue
		}
		if c.fs != nil {
			return p.print(helpOf(c.fs()))
		}
		return p.print(helpOf(flag.NewFlagSet(c.name, flag.ContinueOnError)))
	}
	return p.usage(fmt.Errorf("there is no command %q to help with", strings.Join(args, " ")))
}

// wantsHelp reports whether the arguments of a command without flags ask what it
// does.
func wantsHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-help" || args[0] == "-h")
}

func (p *program) shortHelp([]string) int { return p.print(shortHelp) }

package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"egressd/internal/cli/completion"
	"egressd/internal/cli/explain"
)

//go:embed help.txt
var longHelp string

const shortHelp = `launch runs a program behind a gate that lets out only what you allow.

  launch --allow api.example.com -- claude -p "fix the tests"
  launch --preset npm --allow github.com:22,443 -- npm test

See "launch help" for every flag, "launch demo" to watch it work.
`

// command is one subcommand.
type command struct {
	name string
	run  func(l *launcher, args []string) int
	fs   func() *flag.FlagSet // its flags, for completion; nil: none

	words func() []string // what may follow it, the same; nil: nothing
}

func commands() []command {
	return append([]command{
		{"help", (*launcher).help, nil, nil},
		{"-h", (*launcher).help, nil, nil},
		{"-help", (*launcher).help, nil, nil},
		{"--help", (*launcher).help, nil, nil},
		{"explain", (*launcher).explain, func() *flag.FlagSet { return new(explainOptions).flags() }, nil},
		{"check", (*launcher).check, nil, nil},
		{"doctor", (*launcher).doctor, nil, nil},
		{"presets", (*launcher).presets, nil, nil},
		{"demo", (*launcher).demo, nil, nil},
		{"sandbox", (*launcher).sandbox, boxFlags, boxNames},
		{"completion", (*launcher).completion, nil, nil},
		{"version", (*launcher).version, nil, nil},
		{"--version", (*launcher).version, nil, nil},
	}, developing()...)
}

// getenv reports a variable of the environment; "" when it is not set.
func (l *launcher) getenv(name string) string {
	for _, kv := range l.environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// say prints on the standard error; nothing can be done when that fails.
func (l *launcher) say(format string, args ...any) { _, _ = fmt.Fprintf(l.stderr, format, args...) }

// fail prints err as launch's own words and reports code.
func (l *launcher) fail(code int, err error) int {
	l.say("launch: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	return code
}

// print writes an answer on the standard output.
func (l *launcher) print(text string) int {
	if _, err := io.WriteString(l.stdout, text); err != nil {
		return l.fail(exitNo, err)
	}
	return exitOK
}

// parse reads a subcommand's flags. done means that code is the answer.
func (l *launcher) parse(fs *flag.FlagSet, args []string) (code int, done bool) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return l.print(longHelp), true
	case err != nil:
		return l.usage(exitUsage, err), true
	}
	return exitOK, false
}

// usage reports a misuse. The flag package spells flags with one dash.
func (l *launcher) usage(code int, err error) int {
	text := strings.NewReplacer("flag provided but not defined: -", "there is no flag --", " for flag -", " for --",
		"flag needs an argument: -", "a value is missing after --").Replace(err.Error())
	return l.fail(code, errors.New(text+"\nsee launch help"))
}

func (l *launcher) help([]string) int { return l.print(longHelp) }

func (l *launcher) version(args []string) int {
	if len(args) > 0 {
		return l.usage(exitUsage, errors.New("version takes no arguments"))
	}
	return l.print("launch " + explain.Version() + "\n")
}

func (l *launcher) completion(args []string) int {
	if len(args) != 1 {
		return l.usage(exitUsage, errors.New("completion takes one shell: bash, zsh or fish"))
	}
	spec := completion.Spec{Program: "launch", Flags: new(options).flags(), Runs: true}
	for _, c := range commands() {
		if strings.HasPrefix(c.name, "-") {
			continue
		}
		sub := completion.Command{Name: c.name}
		if c.fs != nil {
			sub.Flags = c.fs()
		}
		if c.words != nil {
			sub.Words = c.words()
		}
		spec.Commands = append(spec.Commands, sub)
	}
	text, err := completion.Script(args[0], spec)
	if err != nil {
		return l.usage(exitUsage, err)
	}
	return l.print(text)
}

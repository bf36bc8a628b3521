package cli

import (
	"errors"
	"flag"
	"strings"

	"egressd/internal/cli/completion"
	"egressd/internal/nearest"
)

// Command is one command of a program.
type Command struct {
	Name  string
	Run   func(args []string) int // reports the exit code
	Flags func() *flag.FlagSet    // nil: none
	Words func() []string         // what may follow the name, for completion; nil: nothing
}

// Find finds the command of a name.
func Find(all []Command, name string) (c Command, ok bool) {
	for _, c := range all {
		if c.Name == name {
			return c, true
		}
	}
	return Command{}, false
}

// Meant reports the command of a name like word; "": there is none.
func Meant(all []Command, word string) string {
	var known []string
	for _, c := range all {
		if !strings.HasPrefix(c.Name, "-") {
			known = append(known, c.Name)
		}
	}
	return nearest.Word(word, known, farthest)
}

// PrintVersion is the command version.
func (p *Program) PrintVersion(args []string) int {
	if len(args) > 0 {
		return p.Usage(errors.New("version takes no arguments"))
	}
	return p.Print(p.Name + " " + Version() + "\n")
}

// PrintCompletion is the command completion. flags are those of the program
// itself; runs is as in completion.Spec.
func (p *Program) PrintCompletion(args []string, flags *flag.FlagSet, all []Command, runs bool) int {
	if len(args) != 1 {
		return p.Usage(errors.New("completion takes one shell, bash, zsh or fish, or man for the manual page"))
	}
	spec := completion.Spec{Program: p.Name, Flags: flags, Runs: runs}
	for _, c := range all {
		if strings.HasPrefix(c.Name, "-") {
			continue
		}
		sub := completion.Command{Name: c.Name}
		if c.Flags != nil {
			sub.Flags = c.Flags()
		}
		if c.Words != nil {
			sub.Words = c.Words()
		}
		spec.Commands = append(spec.Commands, sub)
	}
	text, err := completion.Script(args[0], spec)
	if err != nil {
		return p.Usage(err)
	}
	return p.Print(text)
}

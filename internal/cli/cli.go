// Package cli is the command line that egressd and launch have in common: what
// is printed where, exit codes, flags, version and completion.
//
//	p := &cli.Program{Name: "launch", Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Help: help}
//	fs := flag.NewFlagSet("check", flag.ContinueOnError)
//	if code, done := p.Parse(fs, args); done {
//		return code
//	}
//	return p.Print(answer)
//
// Rules of output:
//
//   - An answer goes to the standard output, and nothing else does: Print.
//   - Everything else goes to the standard error: Say.
//   - An error is one line that begins with the program's name; further lines are
//     indented: Fail. It is printed once, where it becomes an exit code.
//   - A misuse names the flag as it is typed, and then the command for help: Usage.
//   - Text that others chose, such as a host that a program asked for, is escaped.
//   - Colours and progress are shown on terminals only; NO_COLOR takes colours away.
package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"egressd/internal/nearest"
)

// Exit codes.
const (
	ExitOK    = 0
	ExitNo    = 1 // the answer is no, or the command failed
	ExitUsage = 2 // misuse, or a policy with errors
)

// Program is what every command gets: the three streams and the environment.
type Program struct {
	Name                  string // egressd or launch
	Stdin, Stdout, Stderr *os.File
	Environ               []string // NAME=VALUE each

	// Help reports the help of the command whose flags fs holds.
	Help func(fs *flag.FlagSet) string
}

// SilenceStandardLog drops what is written to package log. No package of ours
// uses it.
//
// Threat: an origin sends bytes that nobody asked for on a kept connection, and
// net/http quotes them through the standard logger on the person's terminal ->
// what goes to that logger is dropped.
func SilenceStandardLog() { log.SetOutput(io.Discard) }

// Getenv reports a variable of the environment, or "" if it is not set.
func (p *Program) Getenv(name string) string {
	for _, kv := range p.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Say prints on the standard error. There is nothing to do if that fails.
func (p *Program) Say(format string, args ...any) { _, _ = fmt.Fprintf(p.Stderr, format, args...) }

// Fail prints an error and reports code.
func (p *Program) Fail(code int, err error) int {
	p.Say("%s: %s\n", p.Name, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	return code
}

// Print prints an answer on the standard output. It reports ExitNo if that fails.
func (p *Program) Print(text string) int {
	if _, err := io.WriteString(p.Stdout, text); err != nil {
		return p.Fail(ExitNo, err)
	}
	return ExitOK
}

// PrintJSON prints v as an answer for programs. Every field of it is documented: new
// ones may come, and none changes its meaning.
func (p *Program) PrintJSON(v any) int {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return p.Fail(ExitNo, err)
	}
	return p.Print(string(data) + "\n")
}

// Usage prints a misuse and reports ExitUsage. Package flag spells flags with one
// dash; help and messages spell them with two.
func (p *Program) Usage(err error) int {
	text := strings.NewReplacer("flag provided but not defined: -", "there is no flag --", " for flag -", " for --",
		"flag needs an argument: -", "a value is missing after --").Replace(err.Error())
	return p.Fail(ExitUsage, errors.New(text+"\nsee "+p.Name+" help"))
}

// Parse reads the flags of a command. If done is true, code is the command's
// result: its help was printed, or a misuse.
func (p *Program) Parse(fs *flag.FlagSet, args []string) (code int, done bool) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return p.Print(p.Help(fs)), true
	case err != nil:
		return p.Usage(MeantFlag(fs, err)), true
	}
	return ExitOK, false
}

// MeantFlag is err, an error of fs.Parse, with the flag that a mistyped one was meant
// to be.
func MeantFlag(fs *flag.FlagSet, err error) error {
	typed, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return err
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if meant := nearest.Word(strings.TrimLeft(typed, "-"), known, farthest); meant != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, meant)
	}
	return err
}

// farthest is how many letters a mistyped word is from the one that was meant.
const farthest = 2

// WantsHelp reports whether args are a request for help and nothing else, for
// commands without flags.
func WantsHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help")
}

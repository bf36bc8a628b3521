package main

import (
	"errors"
	"flag"

	"egressd/internal/cli"
)

type applyOptions struct{ dry bool }

func (o *applyOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("apply", flag.ContinueOnError)
	fs.BoolVar(&o.dry, "dry-run", false, "change nothing, and say what would be")
	return fs
}

// apply makes the changes that a run with --overlay-to kept: 0 all, 1 some are
// refused, 2 there are none to make.
func (l *launcher) apply(args []string) int {
	var o applyOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("write: launch apply [--dry-run] DIR"))
	}
	code, err := l.Apply(fs.Arg(0), o.dry)
	if err != nil {
		return l.Fail(max(code, cli.ExitNo), err)
	}
	return code
}

package main

import (
	"errors"
	"flag"
	"fmt"

	"egressd/cmd/launch/ahead"
	"egressd/internal/cli"
	"egressd/internal/run"
)

// program is the main job: launch [flags] -- PROGRAM.
func (l *launcher) program(args []string) int {
	early := ahead.Init()
	defer early.Discard() // unless the run has taken it
	var o run.Options
	err := o.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return l.Print(longHelp)
	}
	if err == nil {
		err = o.Validate()
	} else if meant := cli.Meant(l.commands(), args[0]); meant != "" && len(o.Argv) == len(args) {
		err = fmt.Errorf("%w; did you mean launch %s?", err, meant)
	}
	if err != nil {
		l.Usage(err)
		return run.ExitLauncher
	}
	if o.Plain() {
		l.Init = early
	}
	return l.Run(&o)
}

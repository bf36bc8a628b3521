package main

import (
	"errors"
	"flag"

	"egressd/internal/cli"
	"egressd/internal/run/doctor"
)

func doctorFlags(o *doctor.Output) *flag.FlagSet {
	fs := flag.NewFlagSet("doctor", flag.ContinueOnError)
	fs.BoolVar(&o.JSON, "json", false, "print what was found in JSON")
	fs.Var(&o.Color, "color", "colour the text: `WHEN` is auto, always or never")
	return fs
}

// doctor says what this machine can do and what to change.
func (l *launcher) doctor(args []string) int {
	if len(args) == 1 && args[0] == doctor.InsideFlag {
		if err := doctor.Inside(l.Stdout); err != nil {
			return l.Fail(cli.ExitNo, err)
		}
		return cli.ExitOK
	}
	var o doctor.Output
	fs := doctorFlags(&o)
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return l.Usage(errors.New("doctor takes no arguments"))
	}
	return doctor.Examine(&l.Launcher, o)
}

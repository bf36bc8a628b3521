package main

import (
	"errors"

	"egressd/internal/cli"
	"egressd/internal/run/doctor"
)

// doctor says what this machine can do and what to change.
func (l *launcher) doctor(args []string) int {
	switch {
	case len(args) == 0:
		return doctor.Examine(&l.Launcher)
	case len(args) == 1 && args[0] == doctor.InsideFlag:
		if err := doctor.Inside(l.Stdout); err != nil {
			return l.Fail(cli.ExitNo, err)
		}
		return cli.ExitOK
	}
	return l.Usage(errors.New("doctor takes no arguments"))
}

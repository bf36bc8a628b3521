// Package ahead starts the init of the run that a command line plainly asks
// for, while the rest of launch is still being initialised.
//
// Making namespaces and starting a process in them takes 2.5 ms, and launch
// itself takes as long to get to know its policy: side by side they cost one
// of the two. The init holds nothing of the person's, is told nothing, runs
// nothing of anybody's, and dies with this process; a run that does not fit it
// discards it and starts its own.
package ahead

import (
	"os"
	"syscall"

	"egressd/sandbox/process/spawn"
)

// early is started when this package is initialised, which is long before main:
// it imports little, see sandbox/process/inside/early_linux.go.
var early = begin(os.Args)

// Init reports the init that was started ahead, nil when there is none. Whoever
// gets it takes it or discards it.
func Init() *spawn.Pending { return early }

func begin(args []string) *spawn.Pending {
	sudo, _ := syscall.Getenv("SUDO_UID")
	if !plain(args) || sudo != "" && os.Geteuid() == 0 {
		return nil
	}
	return spawn.Ahead()
}

// plain reports whether args is the form that runs a program, in this process
// tier, as this user, without ports of its own: launch [flags] -- program. A
// mistake costs a process that is started and ended in vain.
func plain(args []string) bool {
	if len(args) < 3 || args[0] == spawn.Name {
		return false
	}
	for i, arg := range args[1:] {
		if arg == "--" {
			return len(args) > i+2
		}
		if i == 0 && (arg == "" || arg[0] != '-') {
			return false // a command of launch
		}
		switch flagName(arg) {
		case "isolation", "tier", "user", "publish", "host-port", "h", "help":
			return false
		}
	}
	return false
}

// flagName is the NAME of --NAME=VALUE. Package strings is initialised later.
func flagName(arg string) string {
	for arg != "" && arg[0] == '-' {
		arg = arg[1:]
	}
	for i := range len(arg) {
		if arg[i] == '=' {
			return arg[:i]
		}
	}
	return arg
}

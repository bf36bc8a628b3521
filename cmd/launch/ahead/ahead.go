// Package ahead starts the init of a run while launch itself is still being
// initialised, if the command line plainly asks for a run.
//
//	init := ahead.Init() // nil: none was started
//	defer init.Discard() // unless the run has taken it
//
// Making namespaces and starting a process in them takes 2.5 ms, and launch needs
// as long to read its policy: side by side they cost one of the two. The init knows
// nothing of the run, executes nothing, and dies with this process. A run that it
// does not fit discards it and starts its own.
//
// It is started at package initialisation, before flags are parsed, so plain reads
// the command line by itself. A test holds plain against the flags of package run.
package ahead

import (
	"os"
	"syscall"

	"egressd/sandbox/process/spawn"
)

// early is started when this package is initialised. That is long before main,
// because the package imports little: see sandbox/process/inside/early_linux.go.
var early = begin(os.Args)

// Init reports the init that was started ahead; nil if there is none. The caller
// takes it or discards it.
func Init() *spawn.Pending { return early }

func begin(args []string) *spawn.Pending {
	sudo, _ := syscall.Getenv("SUDO_UID")
	if !plain(args) || sudo != "" && os.Geteuid() == 0 {
		return nil
	}
	return spawn.Ahead()
}

// plain reports whether args have the form launch [flags] -- program, for a run in
// the process tier, as this user, without ports. A mistake costs a process that is
// started and ended in vain: run.Options.Plain decides.
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
		case "isolation", "tier", "user", "limit", "publish", "host-port", "h", "help":
			return false
		}
	}
	return false
}

// flagName is the NAME of --NAME=VALUE. It does not use package strings, which is
// initialised later.
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

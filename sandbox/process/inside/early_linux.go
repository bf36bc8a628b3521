package inside

import (
	"os"

	"egressd/sandbox/process/spawn"
)

// init takes over a process that was started as an init, before the packages
// are initialised that only a supervisor needs, and never returns there.
//
// It is the one function of this name in the program. Go initialises packages
// in the order of their import paths as soon as what they import is ready, so
// this one, which imports little, comes long before HTTP, TLS, YAML and the
// proxy. Their initialisation would cost every start about 1.8 of 11 ms in pid
// 1, which uses none of them; runc and others take over as early for the same
// reason. Argv[0] gives no one a way in: only a process that chooses the whole
// command line can set it, and an init without a control socket ends at once.
func init() {
	if len(os.Args) > 0 && os.Args[0] == spawn.Name {
		os.Exit(run(os.Args[1:]))
	}
}

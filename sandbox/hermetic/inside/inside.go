// Package inside is the worker of a hermetic run: the launcher's own executable
// started once more, which confines itself and then interprets the script. Its
// main function is Run, which a command calls if IsWorker says so:
//
//	if inside.IsWorker(os.Args) {
//		os.Exit(inside.Run(nil))
//	}
//
// No process and no socket is made in it.
package inside

import "egressd/sandbox/hermetic/control"

// IsWorker reports whether a process with these arguments was started as a
// worker. Nobody but the launcher can choose that without choosing the whole
// command line, and a worker without a control socket ends at once.
func IsWorker(args []string) bool { return len(args) == 1 && args[0] == control.Name }

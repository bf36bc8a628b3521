// Package inside is the worker of a hermetic run: the launcher's own executable
// started once more, which confines itself and then interprets the script. No
// process and no socket is made in it.
package inside

import (
	"egressd/hermetic/archive"
	"egressd/hermetic/awk"
	"egressd/hermetic/command"
	"egressd/hermetic/compare"
	"egressd/hermetic/data"
	"egressd/hermetic/files"
	"egressd/hermetic/find"
	"egressd/hermetic/grep"
	"egressd/hermetic/run"
	"egressd/hermetic/sed"
	"egressd/hermetic/text"
	"egressd/hermetic/web"
	"egressd/sandbox/hermetic/control"
)

// IsWorker reports whether a process with these arguments was started as a
// worker. Nobody but the launcher can choose that without choosing the whole
// command line, and a worker without a control socket ends at once.
func IsWorker(args []string) bool { return len(args) == 1 && args[0] == control.Name }

// commands joins what a script can call. Curl and wget exist only with a network.
func commands(network bool, more command.Table) (command.Table, error) {
	tables := []command.Table{
		text.Commands(), grep.Commands(), sed.Commands(), awk.Commands(), data.Commands(), compare.Commands(),
		files.Commands(), find.Commands(), run.Commands(), archive.Commands(), more,
	}
	if network {
		tables = append(tables, web.Commands())
	}
	return command.Join(tables...)
}

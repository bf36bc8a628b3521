package hermetic

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/archive"
	"egressd/hermetic/internal/awk"
	"egressd/hermetic/internal/compare"
	"egressd/hermetic/internal/data"
	"egressd/hermetic/internal/files"
	"egressd/hermetic/internal/find"
	"egressd/hermetic/internal/grep"
	"egressd/hermetic/internal/run"
	"egressd/hermetic/internal/sed"
	"egressd/hermetic/internal/text"
	"egressd/hermetic/internal/web"
)

// Commands is what a script can call besides the shell's builtins: ours, curl
// and wget if there is a network, and more (nil: none). A name that is there
// twice is an error.
func Commands(network bool, more command.Table) (command.Table, error) {
	tables := []command.Table{
		text.Commands(), grep.Commands(), sed.Commands(), awk.Commands(), data.Commands(), compare.Commands(),
		files.Commands(), find.Commands(), run.Commands(), archive.Commands(), more,
	}
	if network {
		tables = append(tables, web.Commands())
	}
	return command.Join(tables...)
}

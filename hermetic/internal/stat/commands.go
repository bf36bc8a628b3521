// Package stat is stat.
package stat

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"stat": gnu.Tool(stat),
	}
}

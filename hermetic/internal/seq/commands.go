// Package seq is the tools that make lines: seq and yes.
package seq

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"seq": gnu.Tool(seq),
		"yes": gnu.Tool(yes),
	}
}

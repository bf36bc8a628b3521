// Package getopt is getopt, the program that scripts read their options with.
package getopt

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"getopt": gnu.Tool(getopt),
	}
}

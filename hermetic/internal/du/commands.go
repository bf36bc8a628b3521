// Package du is du.
package du

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"du": gnu.Tool(du),
	}
}

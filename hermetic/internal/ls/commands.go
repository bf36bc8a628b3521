// Package ls is ls.
package ls

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"ls": gnu.Tool(ls),
	}
}

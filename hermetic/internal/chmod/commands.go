// Package chmod is chmod.
package chmod

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"chmod": gnu.Tool(chmod),
	}
}

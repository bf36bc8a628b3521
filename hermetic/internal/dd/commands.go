// Package dd is dd.
package dd

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"dd": gnu.Tool(dd),
	}
}

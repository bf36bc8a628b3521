// Package split is split.
package split

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"split": gnu.Tool(split),
	}
}

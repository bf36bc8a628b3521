// Package tr is tr.
package tr

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"tr": gnu.Tool(tr),
	}
}

// Package numfmt is numfmt.
package numfmt

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"numfmt": gnu.Tool(numfmt),
	}
}

// Package patch is patch.
package patch

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"patch": gnu.ToolWith(2, patch)}
}

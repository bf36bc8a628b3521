// Package diff is diff and cmp.
package diff

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"diff": gnu.ToolWith(2, diff), "cmp": gnu.ToolWith(2, cmp)}
}

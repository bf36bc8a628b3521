// Package cut is the tools for columns: cut, paste, column, fold, expand and
// unexpand.
package cut

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"column":   gnu.Tool(column),
		"cut":      gnu.Tool(cut),
		"expand":   gnu.Tool(expand),
		"fold":     gnu.Tool(fold),
		"paste":    gnu.Tool(paste),
		"unexpand": gnu.Tool(unexpand),
	}
}

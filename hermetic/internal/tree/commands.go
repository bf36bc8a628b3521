// Package tree is tree.
package tree

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"tree": gnu.Tool(tree),
	}
}

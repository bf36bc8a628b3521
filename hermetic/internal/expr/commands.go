// Package expr is the tools that compute and compare: expr, test and [.
package expr

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"expr": gnu.Tool(expr), "test": gnu.Tool(test), "[": gnu.Tool(testBracket)}
}

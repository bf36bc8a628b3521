// Package printf is printf and echo.
package printf

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"echo":   gnu.Tool(echo),
		"printf": gnu.Tool(printf),
	}
}

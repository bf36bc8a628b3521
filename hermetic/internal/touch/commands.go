// Package touch is touch and truncate.
package touch

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"touch":    gnu.Tool(touch),
		"truncate": gnu.Tool(truncate),
	}
}

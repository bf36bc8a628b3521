// Package file is file, for the kinds of file that scripts ask about.
package file

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"file": gnu.Tool(file),
	}
}

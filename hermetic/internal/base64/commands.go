// Package base64 is base64.
package base64

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"base64": gnu.Tool(base64Tool),
	}
}

// Package iconv is iconv.
package iconv

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"iconv": gnu.Tool(iconv),
	}
}

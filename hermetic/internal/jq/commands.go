// Package jq is jq: its options, what it reads and what it prints. Package lang
// is the language.
package jq

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"jq": gnu.ToolWith(2, jq)}
}

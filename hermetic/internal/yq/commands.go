// Package yq is yq, with the language of jq, over YAML and JSON.
package yq

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"yq": gnu.ToolWith(2, yq)}
}

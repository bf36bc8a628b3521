// Package tar is tar.
package tar

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"tar": gnu.ToolWith(2, tarCommand)}
}

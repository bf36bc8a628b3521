// Package mkdir is mkdir, rmdir, unlink and mktemp.
package mkdir

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"mkdir":  gnu.Tool(mkdir),
		"mktemp": gnu.Tool(mktemp),
		"rmdir":  gnu.Tool(rmdir),
		"unlink": gnu.Tool(unlink),
	}
}

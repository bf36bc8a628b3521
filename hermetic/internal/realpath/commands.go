// Package realpath is the tools for names of files: realpath, readlink, basename
// and dirname.
package realpath

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"basename": gnu.Tool(basename),
		"dirname":  gnu.Tool(dirname),
		"readlink": gnu.Tool(readlink),
		"realpath": gnu.Tool(realpath),
	}
}

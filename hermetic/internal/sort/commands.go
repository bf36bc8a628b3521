// Package sort is sort, and the tools for sorted lines: uniq, comm and join; and
// shuf, which undoes it.
package sort

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"comm": gnu.Tool(comm),
		"join": gnu.Tool(join),
		"shuf": gnu.Tool(shuf),
		"sort": gnu.Tool(sortLines),
		"uniq": gnu.Tool(uniq),
	}
}

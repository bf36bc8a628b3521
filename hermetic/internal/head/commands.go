// Package head is the tools that pass a text on, or a part of it: cat, head,
// tail, tac, rev, tee and nl; and wc, which counts it.
package head

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"cat":  gnu.Tool(cat),
		"head": gnu.Tool(head),
		"nl":   gnu.Tool(nl),
		"rev":  gnu.Tool(rev),
		"tac":  gnu.Tool(tac),
		"tail": gnu.Tool(tail),
		"tee":  gnu.Tool(tee),
		"wc":   gnu.Tool(wc),
	}
}

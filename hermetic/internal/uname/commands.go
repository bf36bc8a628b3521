// Package uname is the tools that describe the session: uname, hostname, nproc,
// id, whoami and which; and clear.
package uname

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"clear":    gnu.Tool(clearScreen),
		"hostname": gnu.Tool(hostname),
		"id":       gnu.Tool(id),
		"nproc":    gnu.Tool(nproc),
		"uname":    gnu.Tool(uname),
		"which":    gnu.Tool(which),
		"whoami":   gnu.Tool(whoami),
	}
}

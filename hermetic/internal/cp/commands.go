// Package cp is the tools that put files elsewhere and take them away: cp, mv,
// install, ln and rm.
package cp

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"cp":      gnu.Tool(cp),
		"install": gnu.Tool(install),
		"ln":      gnu.Tool(ln),
		"mv":      gnu.Tool(mv),
		"rm":      gnu.Tool(rm),
	}
}

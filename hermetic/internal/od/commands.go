// Package od is the tools that show bytes: od, hexdump, xxd and strings.
package od

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"hexdump": gnu.Tool(hexdump),
		"od":      gnu.Tool(od),
		"strings": gnu.Tool(stringsOf),
		"xxd":     gnu.Tool(xxd),
	}
}

// Package dump has the tools that show bytes as text and back: od, xxd,
// hexdump, strings and base64.
package dump

import (
	"context"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands is the table of the tools of this package.
func Commands() command.Table {
	t := command.Table{}
	for name, run := range map[string]func(*gnu.Work){
		"base64": base64Tool, "hexdump": hexdump, "od": od, "strings": stringsOf, "xxd": xxd,
	} {
		t[name] = func(ctx context.Context, c *command.Call) int {
			w := gnu.Begin(ctx, c)
			run(w)
			return w.End()
		}
	}
	return t
}

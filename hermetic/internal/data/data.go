// Package data has jq and yq. The language is parsed by gojq; it is run here,
// over objects that keep the order of their keys, as the real jq does.
package data

import (
	"context"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands is the table of the tools of this package.
func Commands() command.Table {
	t := command.Table{}
	for name, run := range map[string]func(*gnu.Work){"jq": jq, "yq": yq} {
		t[name] = func(ctx context.Context, c *command.Call) int {
			w := gnu.Begin(ctx, c)
			w.Usage = 2
			run(w)
			return w.End()
		}
	}
	return t
}

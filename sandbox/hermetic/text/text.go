// Package text has the tools that work on lines: cat, sort, cut and the like,
// as GNU coreutils 9.1 has them in a UTF-8 locale that sorts by bytes.
package text

import (
	"context"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/gnu"
)

// Commands is the table of the tools of this package.
func Commands() command.Table {
	t := command.Table{}
	for name, run := range map[string]func(*gnu.Work){
		"cat":   cat,
		"cut":   cut,
		"head":  head,
		"nl":    nl,
		"paste": paste,
		"rev":   rev,
		"seq":   seq,
		"sort":  sortLines,
		"tac":   tac,
		"tail":  tail,
		"tee":   tee,
		"tr":    tr,
		"uniq":  uniq,
		"wc":    wc,
	} {
		t[name] = func(ctx context.Context, c *command.Call) int {
			w := gnu.Begin(ctx, c)
			run(w)
			return w.End()
		}
	}
	return t
}

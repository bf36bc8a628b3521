// Package text has the tools that work on lines: cat, sort, cut and the like,
// as GNU coreutils 9.1 has them in a UTF-8 locale that sorts by bytes.
package text

import (
	"context"
	"maps"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/dump"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/sums"
)

// Commands is the table of the tools of this package.
func Commands() command.Table {
	t := command.Table{}
	for _, more := range []command.Table{dump.Commands(), sums.Commands()} {
		maps.Copy(t, more)
	}
	for name, run := range map[string]func(*gnu.Work){
		"cat": cat, "column": column, "comm": comm, "echo": echo, "expand": expand, "fold": fold, "iconv": iconv,
		"join": join, "printf": printf, "shuf": shuf, "split": split, "unexpand": unexpand, "yes": yes,
		"cut":  cut,
		"head": head,
		"nl":   nl, "numfmt": numfmt,
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

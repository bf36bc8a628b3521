package env

import (
	"context"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// The session's user and machine, which are the same everywhere.
const (
	User   = "user"
	UserID = "1000"
	Host   = "localhost"
)

// quiet is true or false: whatever it is given, but --help.
func quiet(status int) command.Func {
	return gnu.Tool(func(w *gnu.Work) {
		w.Status = status
		if len(w.Args) == 2 && (w.Args[1] == "--help" || w.Args[1] == "--version") {
			w.Options("[ignored command line arguments]", "")
		}
	})
}

// Child runs args in place of the caller: as exec does, with its own word for
// what is not there.
func Child(ctx context.Context, c *command.Call, args []string) int {
	if _, ok := c.Find(c.Dir, args[0]); !ok {
		return c.Fail(127, "%s: No such file or directory", quoteFor(c, args[0]))
	}
	return c.Exec(ctx, c.With(args, nil, nil, nil))
}

func quoteFor(c *command.Call, name string) string {
	if c.Args[0] == "xargs" || c.Args[0] == "setsid" || c.Args[0] == "ionice" {
		return name
	}
	return gnu.Quote(name)
}

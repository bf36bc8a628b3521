// Package run is the commands that run others, and those that tell about the
// session: env, xargs, timeout, date, expr, test, id, uname and their like.
package run

import (
	"context"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// The session's user and machine, which are the same everywhere.
const (
	user   = "user"
	userID = "1000"
	host   = "localhost"
)

// Commands are the commands of this room.
func Commands() command.Table {
	return command.Table{
		"[": tool(testBracket), "test": tool(test), "true": quiet(0), "false": quiet(1),
		"clear": tool(clearScreen), "date": tool(date), "env": env, "expr": tool(expr),
		"getopt": tool(getopt), "hostname": tool(hostname), "id": tool(id),
		"nproc":    tool(nproc),
		"printenv": tool(printenv), "sleep": sleep, "time": timeCommand,
		"timeout": timeout, "uname": tool(uname), "which": tool(which),
		"whoami": tool(whoami), "xargs": xargs,
	}
}

// tool makes a command of a function that works on a buffered output.
func tool(f func(*gnu.Work)) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := gnu.Begin(ctx, c)
		f(w)
		return w.End()
	}
}

// quiet is true or false: whatever it is given, but --help.
func quiet(status int) command.Func {
	return tool(func(w *gnu.Work) {
		w.Status = status
		if len(w.Args) == 2 && (w.Args[1] == "--help" || w.Args[1] == "--version") {
			w.Options("[ignored command line arguments]", "")
		}
	})
}

// child runs args in place of the caller: as exec does, with its own word for
// what is not there.
func child(ctx context.Context, c *command.Call, args []string) int {
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

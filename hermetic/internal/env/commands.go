// Package env is the tools that run other commands: env, timeout and time; and
// printenv, sleep, true and false.
package env

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"env": env, "printenv": gnu.Tool(printenv), "timeout": timeout, "time": timeCommand, "sleep": sleep,
		"true": quiet(0), "false": quiet(1),
	}
}

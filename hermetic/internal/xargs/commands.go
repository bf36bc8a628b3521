// Package xargs is xargs.
package xargs

import "egressd/hermetic/command"

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"xargs": xargs}
}

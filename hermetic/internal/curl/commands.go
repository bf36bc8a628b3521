// Package curl is curl, over package fetch.
package curl

import "egressd/hermetic/command"

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"curl": curl}
}

// Package wget is wget, over package fetch.
package wget

import "egressd/hermetic/command"

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"wget": wget}
}

// Package date is date, and what other commands need of it: the format strings of
// date(1), its words for dates ("last monday", "2 days ago"), and time zones as TZ
// names them.
package date

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"date": gnu.Tool(date)}
}

// Package printf formats as printf(3) does in the C locale, for all commands that
// have its directives (printf, the shell, awk, seq), and is printf and echo:
//
//	d, n := printf.Syntax{Lengths: "hlLjzt", Star: star}.Parse("%+.3e, ...")
//	text := d.Float(gnu.NewFloat(1234.5)) // "+1.234e+03"
//
// What differs between the commands stays with them: how they read an argument,
// which conversions they have, and what they report.
package printf

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"echo":   gnu.Tool(echo),
		"printf": gnu.Tool(printf),
	}
}

package policyflags

import (
	"strings"

	"egressd/internal/cli"
	"egressd/policy/files"
)

// UnknownPort stands behind the name in a suggested rule for a port that is not known.
const UnknownPort = ":PORT"

// SpellFile spells the flag that opens a path, for a POSIX shell.
func SpellFile(path string, wanted files.Access) string {
	return "--" + wanted.Key() + " " + cli.Quote(files.Literal(path))
}

// Spell spells rules as --allow flags for a POSIX shell: what a person types to
// allow them.
func Spell(rules []string) string {
	var words []string
	var plain []string
	for _, r := range rules {
		if strings.ContainsAny(r, " ,") || strings.Contains(r, "://") {
			words = append(words, "--allow "+cli.Quote(r))
		} else {
			plain = append(plain, r)
		}
	}
	if len(plain) > 0 {
		words = append([]string{"--allow " + cli.Quote(strings.Join(plain, ","))}, words...)
	}
	return strings.Join(words, " ")
}

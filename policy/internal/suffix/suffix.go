// Package suffix knows the domains below which names belong to different owners.
//
//	suffix.Public("co.uk")     // true: a registry's
//	suffix.Shared("github.io") // true: one company's, and strangers own names below it
package suffix

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Public reports whether name is a whole ICANN suffix such as com or co.uk. Suffixes
// of the list's private half (github.io) are ordinary domains.
func Public(name string) bool {
	suffix, icann := publicsuffix.PublicSuffix(name)
	if icann && suffix == name {
		return true
	}
	// A list entry "*.ck" makes every name directly below ck a suffix.
	below := "x." + name
	suffix, icann = publicsuffix.PublicSuffix(below)
	return icann && suffix == below
}

// Shared reports whether name is a suffix of the list's private half, or the base
// of one ("*.compute.amazonaws.com"): names directly below belong to different
// owners.
func Shared(name string) bool {
	for _, n := range [...]string{name, "x." + name} {
		suffix, icann := publicsuffix.PublicSuffix(n)
		if !icann && suffix == n && strings.Contains(n, ".") {
			return true
		}
	}
	return false
}

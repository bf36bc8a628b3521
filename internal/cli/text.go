package cli

import (
	"strconv"
	"strings"
)

// maxText bounds what Safe prints of one text.
const maxText = 256

// Safe spells s so that a terminal shows it and does nothing else: everything but
// printable ASCII is escaped, and a long text is cut.
//
// Threat: a program inside asks for a host made of terminal escapes or line
// breaks, to forge the text that a person reads -> no such byte is printed.
func Safe(s string) string {
	cut := s
	if len(cut) > maxText {
		cut = cut[:maxText]
	}
	q := strconv.QuoteToASCII(cut)
	q = q[1 : len(q)-1]
	if len(q) > maxText || len(cut) < len(s) {
		return q[:min(len(q), maxText)] + "..."
	}
	return q
}

// Quote makes s one word of a POSIX shell.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r == '-' || r == '.' || r == '_' || r == ':' || r == ',' || r == '/' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

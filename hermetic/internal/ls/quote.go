package ls

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/gnu"
)

// quote writes a name in the quoting style.
func (l *listing) quote(s string) string {
	switch l.quoting {
	case "literal":
		if l.control == "hide" {
			return controls().ReplaceAllString(s, "?")
		}
		return s
	case "shell", "shell-always":
		if gnu.QuoteName(s) == s && l.quoting == "shell" {
			return s
		}
		if controls().MatchString(s) {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
		return gnu.QuoteShell(s)
	case "shell-escape":
		return gnu.QuoteName(s)
	case "shell-escape-always":
		return gnu.QuoteShell(s)
	case "escape":
		return cEscape(s, " ")
	case "c-maybe":
		if e := cEscape(s, `"`); e == s {
			return s
		}
	case "locale", "clocale":
		return gnu.Quote(s)
	}
	return `"` + cEscape(s, `"`) + `"`
}

// cEscape writes s as in a string of C, special characters with a backslash.
func cEscape(s, special string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1 || r < ' ' || r == 0x7f:
			if at := strings.IndexByte("\a\b\t\n\v\f\r", s[0]); at >= 0 {
				b.WriteString(`\` + "abtnvfr"[at:at+1])
			} else {
				fmt.Fprintf(&b, `\%03o`, s[0])
			}
		case r == '\\' || strings.ContainsRune(special, r):
			b.WriteString(`\` + s[:n])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

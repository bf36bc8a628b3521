package files

import (
	"fmt"
	"strings"
	"unicode"
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

// columns is how wide a name is on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide says whether a character takes two columns: East Asian and emoji.
func wide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf && r != 0x303f || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f900 && r <= 0x1f9ff || r >= 0x20000 && r <= 0x3fffd
}

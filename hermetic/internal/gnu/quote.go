package gnu

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote is s in the quotes of GNU's messages in a UTF-8 locale: ‘s’, with what
// is not printable escaped as in C.
func Quote(s string) string {
	var b strings.Builder
	b.WriteString("‘")
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\%03o`, s[0])
		case r == '\\':
			b.WriteString(`\\`)
		case r == '’':
			b.WriteString(`\’`)
		case printable(r):
			b.WriteString(s[:n])
		default:
			escape(&b, s[:n])
		}
		s = s[n:]
	}
	b.WriteString("’")
	return b.String()
}

func printable(r rune) bool { return unicode.IsPrint(r) || (r > 0x7f && unicode.IsSpace(r)) }

func escape(b *strings.Builder, s string) {
	for i := range len(s) {
		if at := strings.IndexByte("\a\b\t\n\v\f\r", s[i]); at >= 0 {
			b.WriteString(`\` + "abtnvfr"[at:at+1])
		} else {
			fmt.Fprintf(b, `\%03o`, s[i])
		}
	}
}

// shellSpecial are the characters that make QuoteName quote.
const shellSpecial = " \t\n!\"#$&'()*;<=>?[\\]^`|~{}"

// QuoteName is a file's name in a message: as it is, or as a shell would read
// it when it has characters that a shell treats specially.
func QuoteName(s string) string {
	plain := s != ""
	for i, r := range s {
		special := strings.ContainsRune(shellSpecial, r)
		if (r == '#' || r == '~') && i > 0 || (r == '{' || r == '}') && len(s) > 1 || r == ']' || r == '=' && i > 0 {
			special = false
		}
		if special || !printable(r) || r == utf8.RuneError {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return QuoteShell(s)
}

// QuoteShell is s quoted for a shell, always.
func QuoteShell(s string) string {
	if strings.Contains(s, "'") && !strings.ContainsAny(s, "\"\\$`!") && clean(s) {
		return `"` + s + `"`
	}
	var b strings.Builder
	b.WriteByte('\'')
	escaping := false
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		bad := r == utf8.RuneError && n == 1 || !printable(r)
		if bad && !escaping {
			b.WriteString("'$'")
		} else if !bad && escaping {
			b.WriteString("''")
		}
		escaping = bad
		switch {
		case bad:
			escape(&b, s[:n])
		case r == '\'':
			b.WriteString(`'\''`)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	b.WriteByte('\'')
	return b.String()
}

func clean(s string) bool {
	for _, r := range s {
		if !printable(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// Package quote writes text so that a shell reads it back, and reads escapes.
//
//	quote.Single("it's")       // 'it'\''s'
//	quote.Double("$x")         // "\$x", as declare -p
//	quote.Backslash("a b")     // a\ b, as printf %q
//	quote.DecodeANSI(`a\tb`)   // what $'a\tb' means
//
// Text with control characters is written as $'...' by all of them.
package quote

import (
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/pattern"
)

// Single quotes as ${x@Q} does.
func Single(s string) string {
	if needsANSI(s) {
		return ansi(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// needsANSI reports whether s has a character that cannot be printed.
func needsANSI(s string) bool {
	for i := 0; i < len(s); {
		r, size := chars.First(s[i:])
		if r < ' ' || r == 0x7f || r == utf8.RuneError && size == 1 || !printable(r) {
			return true
		}
		i += size
	}
	return false
}

func printable(r rune) bool { return r < 128 || pattern.Named("print")(r) }

// ansi writes s as $'...'.
func ansi(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, size := chars.First(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == 0x1b:
			b.WriteString(`\E`)
		case r < ' ' && strings.IndexByte("\a\b\t\n\v\f\r", byte(r)) >= 0:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[r-7])
		case r < ' ' || r == 0x7f:
			octal(&b, byte(r))
		case r == utf8.RuneError && size == 1 || !printable(r):
			for _, c := range []byte(s[i : i+size]) {
				octal(&b, c)
			}
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteString("'")
	return b.String()
}

func octal(b *strings.Builder, c byte) {
	b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
}

// Backslash quotes as printf %q does.
func Backslash(s string) string {
	switch {
	case s == "":
		return "''"
	case needsANSI(s):
		return ansi(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if strings.IndexByte(" \t\n'\"\\|&;()<>!{}*[]?^$`,", c) >= 0 || i == 0 && (c == '~' || c == '#') ||
			c == '~' && (s[i-1] == ':' || s[i-1] == '=') {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Double quotes a value as declare -p does.
func Double(s string) string {
	if needsANSI(s) {
		return ansi(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("\"$\\`", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// Key quotes a key of an associative array as declare -p does.
func Key(s string) string {
	if needsANSI(s) {
		return ansi(s)
	}
	if s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`,~#@") {
		return Double(s)
	}
	return s
}

// IfNeeded quotes a value as set -x and set without arguments do.
func IfNeeded(s string) string {
	switch {
	case needsANSI(s):
		return ansi(s)
	case s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`") || s[0] == '~' || s[0] == '#':
		return Single(s)
	}
	return s
}

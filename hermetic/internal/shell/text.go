package shell

import (
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/shell/pattern"
)

// firstRune decodes one character; a byte that is not UTF-8 is one of its own.
func firstRune(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

func firstChar(s string) string {
	_, size := firstRune(s)
	return s[:size]
}

func charCount(s string) int { return utf8.RuneCountInString(s) }

// charRange is the characters from to to.
func charRange(s string, from, to int) string {
	start, n := -1, 0
	for i := 0; i < len(s); n++ {
		if n == from {
			start = i
		}
		if n == to {
			if start < 0 {
				return ""
			}
			return s[start:i]
		}
		_, size := firstRune(s[i:])
		i += size
	}
	if start < 0 {
		return ""
	}
	return s[start:]
}

// ansiC reads the escapes of $'...'. What is after a NUL is dropped.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '"', '\'', '?', '\\':
			b.WriteByte(s[i])
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		default:
			text, used, ok := escape(s[i:], false)
			if !ok {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			if text == "\x00" {
				return b.String()
			}
			b.WriteString(text)
			i += used - 1
		}
	}
	return b.String()
}

// escape reads one escape after its backslash, as echo -e, printf and $” have
// them in common; zero says that octal numbers begin with a 0 (\0nnn).
func escape(s string, zero bool) (text string, used int, ok bool) {
	switch s[0] {
	case 'a':
		return "\a", 1, true
	case 'b':
		return "\b", 1, true
	case 'e', 'E':
		return "\x1b", 1, true
	case 'f':
		return "\f", 1, true
	case 'n':
		return "\n", 1, true
	case 'r':
		return "\r", 1, true
	case 't':
		return "\t", 1, true
	case 'v':
		return "\v", 1, true
	case 'x':
		if n, k := digits(s[1:], 16, 2); k > 0 {
			return string([]byte{byte(n)}), 1 + k, true
		}
		if strings.HasPrefix(s, "x{") {
			n, k := digits(s[2:], 16, 8)
			if k > 0 && 2+k < len(s) && s[2+k] == '}' {
				return string([]byte{byte(n)}), 3 + k, true
			}
		}
		return "", 0, false
	case 'u', 'U':
		most := 4
		if s[0] == 'U' {
			most = 8
		}
		n, k := digits(s[1:], 16, most)
		if k == 0 {
			return "", 0, false
		}
		return encode(n), 1 + k, true
	}
	if zero && s[0] == '0' {
		n, k := digits(s[1:], 8, 3)
		return string([]byte{byte(n)}), 1 + k, true
	}
	if n, k := digits(s, 8, 3); k > 0 && !zero {
		return string([]byte{byte(n)}), k, true
	}
	return "", 0, false
}

// encode is the UTF-8 form of n, of numbers that are no characters, too.
func encode(n uint32) string {
	switch {
	case n < 0x80:
		return string([]byte{byte(n)})
	case n < 0x800:
		return string([]byte{0xc0 | byte(n>>6), 0x80 | byte(n&63)})
	case n < 0x10000:
		return string([]byte{0xe0 | byte(n>>12), 0x80 | byte(n>>6&63), 0x80 | byte(n&63)})
	}
	return string([]byte{0xf0 | byte(n>>18&7), 0x80 | byte(n>>12&63), 0x80 | byte(n>>6&63), 0x80 | byte(n&63)})
}

func digits(s string, base uint32, most int) (n uint32, used int) {
	for used < len(s) && used < most {
		var d uint32
		switch c := s[used]; {
		case '0' <= c && c <= '9':
			d = uint32(c - '0')
		case 'a' <= c && c <= 'f':
			d = uint32(c-'a') + 10
		case 'A' <= c && c <= 'F':
			d = uint32(c-'A') + 10
		default:
			return n, used
		}
		if d >= base {
			return n, used
		}
		n = n*base + d
		used++
	}
	return n, used
}

// quoteSingle is ${x@Q}: single quotes, or $” where a control is.
func quoteSingle(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func needsANSI(s string) bool {
	for i := 0; i < len(s); {
		r, size := firstRune(s[i:])
		if r < ' ' || r == 0x7f || r == utf8.RuneError && size == 1 || !printable(r) {
			return true
		}
		i += size
	}
	return false
}

func printable(r rune) bool { return r < 128 || pattern.Named("print")(r) }

func quoteANSI(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, size := firstRune(s[i:])
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

// quoteBackslash is printf %q.
func quoteBackslash(s string) string {
	switch {
	case s == "":
		return "''"
	case needsANSI(s):
		return quoteANSI(s)
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

// quoteDouble is how declare -p writes a value.
func quoteDouble(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
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

// quoteKey is how declare -p writes the key of an associative array.
func quoteKey(s string) string {
	if needsANSI(s) {
		return quoteANSI(s)
	}
	if s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`,~#@") {
		return quoteDouble(s)
	}
	return s
}

// quoteIfNeeded is how set -x and plain set write a value.
func quoteIfNeeded(s string) string {
	switch {
	case needsANSI(s):
		return quoteANSI(s)
	case s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!{}*[]?^$`") || s[0] == '~' || s[0] == '#':
		return quoteSingle(s)
	}
	return s
}

package quote

import (
	"strings"
)

// DecodeEcho decodes the escapes of echo -e and printf %b. stop reports \c,
// which ends the output.
func DecodeEcho(s string) (text string, stop bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '\\':
			b.WriteByte('\\')
		case 'c':
			return b.String(), true
		default:
			text, used, ok := Escape(s[i:], true)
			if !ok {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			b.WriteString(text)
			i += used - 1
		}
	}
	return b.String(), false
}

// DecodeANSI decodes the text between $' and '. It ends at a NUL.
func DecodeANSI(s string) string {
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
			text, used, ok := Escape(s[i:], false)
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

// Escape decodes one escape, without its backslash, of those that echo -e,
// printf and $'...' share. With zero, octal numbers begin with a 0 (\0nnn).
// used is the length of the escape.
func Escape(s string, zero bool) (text string, used int, ok bool) {
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
		if n, k := Digits(s[1:], 16, 2); k > 0 {
			return string([]byte{byte(n)}), 1 + k, true
		}
		if strings.HasPrefix(s, "x{") {
			n, k := Digits(s[2:], 16, 8)
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
		n, k := Digits(s[1:], 16, most)
		if k == 0 {
			return "", 0, false
		}
		return encode(n), 1 + k, true
	}
	if zero && s[0] == '0' {
		n, k := Digits(s[1:], 8, 3)
		return string([]byte{byte(n)}), 1 + k, true
	}
	if n, k := Digits(s, 8, 3); k > 0 && !zero {
		return string([]byte{byte(n)}), k, true
	}
	return "", 0, false
}

// encode is the UTF-8 form of n, even if n is not a character.
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

// Digits reads a number of at most most digits at the beginning of s. used is
// how many there are.
func Digits(s string, base uint32, most int) (n uint32, used int) {
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

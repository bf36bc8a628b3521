package event

import (
	"strconv"
	"unicode/utf8"
)

// plain marks the bytes that stand for themselves: printable ASCII but for the
// quote and the backslash (JSON) and <, > and & (pages that show events).
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()

func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || !plain[c] {
			return false
		}
	}
	return true
}

// appendString appends s as a JSON string in printable ASCII. Of a longer one
// it keeps the first most bytes, whole characters, and says how many it cut.
func appendString(b []byte, s string, most int) []byte {
	cut := 0
	if len(s) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		cut, s = len(s)-end, s[:end]
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf && plain[c] {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		r, n := utf8.DecodeRuneInString(s[i:]) // U+FFFD for a byte that is not UTF-8
		b = appendRune(b, r)
		i += n
		start = i
	}
	b = append(b, s[start:]...)
	if cut > 0 {
		b = append(b, "...(+"...)
		b = strconv.AppendInt(b, int64(cut), 10)
		b = append(b, " bytes)"...)
	}
	return append(b, '"')
}

func appendRune(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if r > 0xffff { // RFC 8259 section 7: a surrogate pair
		r -= 0x10000
		b = appendUnit(b, 0xd800+(r>>10))
		return appendUnit(b, 0xdc00+(r&0x3ff))
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, u rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

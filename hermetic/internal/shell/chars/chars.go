// Package chars counts and cuts text by characters, as the shell does: UTF-8,
// and a byte that is not part of UTF-8 is a character of its own.
//
//	n := chars.Count("né")          // 2
//	s := chars.Slice("né", 1, 2)    // "é"
//	r, size := chars.First("é")
package chars

import "unicode/utf8"

// First decodes the first character of s, which is not empty. For a byte that
// is not UTF-8 it reports utf8.RuneError and 1.
func First(s string) (r rune, size int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

// Head is the first character of s, which is not empty, as text.
func Head(s string) string {
	_, size := First(s)
	return s[:size]
}

// Count is the number of characters of s.
func Count(s string) int { return utf8.RuneCountInString(s) }

// Slice is the characters of s from index from up to, but not including, index
// to.
func Slice(s string, from, to int) string {
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
		_, size := First(s[i:])
		i += size
	}
	if start < 0 {
		return ""
	}
	return s[start:]
}

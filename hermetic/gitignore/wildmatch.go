package gitignore

import (
	"strings"
	"unicode/utf8"
)

// wildmatch is git's: "*" and "?" do not match a slash, "**" between slashes
// (or at an end) matches any number of directories. Its time is bounded by the
// product of both lengths: each element is matched by itself, and of several
// stars only the last is tried again.
func wildmatch(pattern, name string) bool {
	return matchElements(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// matchElements matches patterns against elements; the last "**" that was seen
// takes one element more whenever what follows it does not match.
func matchElements(patterns, elements []string) bool {
	p, e := 0, 0
	starP, starE := -1, 0
	for e < len(elements) {
		switch {
		case p < len(patterns) && patterns[p] == "**":
			if p == len(patterns)-1 {
				return e < len(elements) // "a/**" is what is inside a
			}
			starP, starE = p, e
			p++
			continue
		case p < len(patterns) && matchElement(patterns[p], elements[e]):
			p++
			e++
			continue
		case starP >= 0:
			starE++
			p, e = starP+1, starE
			continue
		}
		return false
	}
	return p == len(patterns)
}

// matchElement matches one element, which holds no slash.
func matchElement(pattern, s string) bool {
	star, again := -1, 0 // where to go on after the last "*"
	p, i := 0, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, again = p+1, i
			p++
			continue
		}
		if n, width, ok := matchOne(pattern[p:], s[i:]); ok {
			p += n
			i += width
			continue
		}
		if star < 0 {
			return false
		}
		again++
		p, i = star, again
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches the first character of s with the first item of pattern,
// which is n bytes long.
func matchOne(pattern, s string) (n, width int, ok bool) {
	if pattern == "" {
		return 0, 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, 1, true // git matches bytes
	case '[':
		if n, ok := matchSet(pattern, s[0]); n > 0 {
			return n, 1, ok
		}
		return 0, 0, false // a set without an end matches nothing
	case '\\':
		if len(pattern) == 1 {
			return 0, 0, false
		}
		return 2, 1, pattern[1] == s[0]
	}
	if c := pattern[0]; c < utf8.RuneSelf || c == s[0] {
		return 1, 1, c == s[0]
	}
	return 0, 0, false
}

// matchSet reads a bracket expression at the start of pattern; n is its length,
// 0 when it has no end.
func matchSet(pattern string, c byte) (n int, ok bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, ok != negated
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if end := strings.Index(pattern[i:], ":]"); end > 0 {
				ok = ok || inClass(pattern[i+2:i+end], c)
				i += end + 2
				continue
			}
		}
		low, width := setChar(pattern[i:])
		i += width
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			high, width = setChar(pattern[i+1:])
			i += 1 + width
		}
		ok = ok || low <= c && c <= high
	}
	return 0, false
}

func setChar(s string) (c byte, width int) {
	if s[0] == '\\' && len(s) > 1 {
		return s[1], 2
	}
	return s[0], 1
}

func inClass(name string, c byte) bool {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r'
	case "blank":
		return c == ' ' || c == '\t'
	case "punct":
		return '!' <= c && c <= '~' && !lower && !upper && !digit
	case "print":
		return ' ' <= c && c <= '~'
	case "graph":
		return '!' <= c && c <= '~'
	case "cntrl":
		return c < ' ' || c == 0x7f
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	}
	return false
}

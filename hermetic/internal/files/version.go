package files

import "strings"

// versionCompare is filevercmp of GNU: numbers in names count as numbers.
func versionCompare(a, b string) int {
	if a == b {
		return 0
	}
	for _, special := range []string{"", ".", ".."} {
		if a == special {
			return -1
		}
		if b == special {
			return 1
		}
	}
	if ha, hb := strings.HasPrefix(a, "."), strings.HasPrefix(b, "."); ha != hb {
		return b2i(hb) - b2i(ha)
	}
	stemA, stemB := stem(a), stem(b)
	if stemA == stemB {
		stemA, stemB = a, b
	}
	if n := versionParts(stemA, stemB); n != 0 {
		return n
	}
	return versionParts(a, b)
}

// stem is a name without its suffixes of letters: "a-1.2.tar.gz" is "a-1.2".
func stem(s string) string {
	end := len(s)
	for {
		at := strings.LastIndexByte(s[:end], '.')
		if at <= 0 || at+1 == end || !isAlpha(s[at+1]) && s[at+1] != '~' {
			return s[:end]
		}
		for _, c := range []byte(s[at+1 : end]) {
			if !isAlpha(c) && !isDigit(c) && c != '~' {
				return s[:end]
			}
		}
		end = at
	}
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func rank(s string, i int) int {
	switch {
	case i >= len(s):
		return -1
	case isDigit(s[i]):
		return 0
	case isAlpha(s[i]):
		return int(s[i])
	case s[i] == '~':
		return -2
	}
	return int(s[i]) + 256
}

func versionParts(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !isDigit(a[i]) || j < len(b) && !isDigit(b[j]) {
			if ra, rb := rank(a, i), rank(b, j); ra != rb {
				return ra - rb
			}
			i++
			j++
		}
		for i < len(a) && a[i] == '0' {
			i++
		}
		for j < len(b) && b[j] == '0' {
			j++
		}
		first := 0
		for i < len(a) && j < len(b) && isDigit(a[i]) && isDigit(b[j]) {
			if first == 0 {
				first = int(a[i]) - int(b[j])
			}
			i++
			j++
		}
		if i < len(a) && isDigit(a[i]) {
			return 1
		}
		if j < len(b) && isDigit(b[j]) {
			return -1
		}
		if first != 0 {
			return first
		}
	}
	return 0
}

package vars

import (
	"strings"
)

// ValidName reports whether s can name a variable.
func ValidName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// SplitSubscript splits "a[i]"; ok is false if text does not have that form.
func SplitSubscript(text string) (name, index string, ok bool) {
	i := strings.IndexByte(text, '[')
	if i <= 0 || !strings.HasSuffix(text, "]") || !ValidName(text[:i]) {
		return "", "", false
	}
	return text[:i], text[i+1 : len(text)-1], true
}

package fetch

import "strings"

// IsToken reports whether s is a token of RFC 9110, of at most 64 bytes.
func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !IsAlpha(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

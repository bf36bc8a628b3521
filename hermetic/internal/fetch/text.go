package fetch

import (
	"strconv"
	"strings"
)

func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !IsAlpha(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

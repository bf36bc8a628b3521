// Package size reads how much of something a person allows.
//
//	n, err := size.Parse("512M")
package size

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a number above 0: 1000, or 64K, 512M or 2G in powers of 1024. The error
// says how to write one.
func Parse(s string) (int64, error) {
	digits, shift := s, 0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("KMG", s[n-1]&^0x20); i >= 0 {
			digits, shift = s[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number above 0: write 1000, 64K, 512M or 2G", s)
	}
	return int64(n << shift), nil // #nosec G115 -- at most 1<<62
}

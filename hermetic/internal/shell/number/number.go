// Package number reads the decimal numbers of a shell.
//
//	n, ok := number.Parse(" 12 ")   // 12, true
//	n := number.Leading("5.2")      // 5
//	s := number.ZeroPad("7", 3)     // "007"
package number

import (
	"strconv"
	"strings"
)

// Parse reads a decimal number with blanks around it, as test and break do.
func Parse(s string) (int64, bool) {
	s = strings.Trim(s, " \t\n")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.HasPrefix(s, "+-") {
		return 0, false
	}
	return n, true
}

// Leading is the number that s begins with; 0 if it begins with none.
func Leading(s string) int64 {
	var n int64
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1<<30; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}

// ZeroPad puts zeros before s, up to width bytes.
func ZeroPad(s string, width int) string {
	if n := width - len(s); n > 0 {
		return strings.Repeat("0", n) + s
	}
	return s
}

package gnu

import "strings"

// CompareVersions orders file names by the versions in them, as filevercmp of
// gnulib: digits by value, "~" before all else, ends like ".tar.gz" last.
func CompareVersions(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) - len(b)
	case a[0] == '.' || b[0] == '.':
		if a[0] != b[0] {
			if a[0] == '.' {
				return -1
			}
			return 1
		}
		for _, dots := range []string{".", ".."} {
			switch {
			case a == dots && b == dots:
				return 0
			case a == dots:
				return -1
			case b == dots:
				return 1
			}
		}
	}
	pa, pb := versionPrefix(a), versionPrefix(b)
	if d := compareRevisions(a[:pa], b[:pb]); d != 0 || pa == len(a) && pb == len(b) {
		return d
	}
	return compareRevisions(a, b)
}

// versionPrefix is the length of s without endings such as ".tar.gz".
func versionPrefix(s string) int {
	prefix := 0
	for i := 0; i < len(s); {
		i++
		prefix = i
		for i+1 < len(s) && s[i] == '.' && (letter(s[i+1]) || s[i+1] == '~') {
			for i += 2; i < len(s) && (letter(s[i]) || digit(s[i]) || s[i] == '~'); i++ {
			}
		}
	}
	return prefix
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func revisionOrder(s string, i int) int {
	switch {
	case i >= len(s):
		return -1
	case digit(s[i]):
		return 0
	case letter(s[i]):
		return int(s[i])
	case s[i] == '~':
		return -2
	}
	return int(s[i]) + 256
}

func compareRevisions(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !digit(a[i]) || j < len(b) && !digit(b[j]) {
			if d := revisionOrder(a, i) - revisionOrder(b, j); d != 0 {
				return d
			}
			i++
			j++
		}
		m, n := digits(a, min(i, len(a))), digits(b, min(j, len(b)))
		i, j = min(i, len(a))+len(m), min(j, len(b))+len(n)
		m, n = strings.TrimLeft(m, "0"), strings.TrimLeft(n, "0")
		if d := len(m) - len(n); d != 0 {
			return d
		}
		if d := strings.Compare(m, n); d != 0 {
			return d
		}
	}
	return 0
}

func digits(s string, from int) string {
	to := from
	for to < len(s) && digit(s[to]) {
		to++
	}
	return s[from:to]
}

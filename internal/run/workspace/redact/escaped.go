package redact

import (
	"bytes"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
)

// escaped adds a value each byte of which may be written in a way of its own.
func (r *Redactor) escaped(secret int, value string) {
	plain := value
	if len(value) >= minValue {
		plain = strings.NewReplacer("\r", "", "\n", "").Replace(value) // see gap
	}
	if plain == "" {
		return
	}
	lines := plain != value
	match := func(data []byte, at int) (from, to int) {
		// Where the value may go on: a byte can be read in more ways than one, as a
		// backslash that is escaped or is not.
		now := append(make([]int, 0, maxWays), at)
		for n := range len(plain) {
			next := make([]int, 0, maxWays)
			for _, i := range now {
				if len(value) < minValue {
					if i < len(data) && data[i] == plain[n] {
						next = append(next, i+1)
					}
					continue
				}
				if n > 0 {
					i = gap(data, i, plain[n], lines)
				}
				next = units(next, data, i, plain[n])
			}
			if now = next; len(now) == 0 {
				return 0, 0
			}
		}
		return at, slices.Max(now)
	}
	starts := []byte{plain[0]}
	if len(value) >= minValue {
		starts = append(starts, `%\&=`...)
		if plain[0] == ' ' {
			starts = append(starts, '+')
		}
	}
	for i, b := range starts {
		if !bytes.Contains(starts[:i], []byte{b}) {
			r.starts[b] = append(r.starts[b], form{secret, match})
		}
	}
}

// gap skips what may stand between two bytes of a value: the end of a line, a soft one
// of quoted-printable, and the NUL of UTF-16. lines: the value has lines of its own, so
// that they may be indented, or written as \n.
func gap(data []byte, i int, next byte, lines bool) int {
	for n := 0; n < maxGap && i < len(data); n++ {
		switch b := data[i]; {
		case bytes.HasPrefix(data[i:], []byte("=\n")) || bytes.HasPrefix(data[i:], []byte("=\r\n")):
			i++
		case b == next && b != 0:
			return i
		case b == '\r' || b == '\n' || b == 0:
			i++
		case lines && (b == ' ' || b == '\t'):
			i++
		case lines && (bytes.HasPrefix(data[i:], []byte(`\n`)) || bytes.HasPrefix(data[i:], []byte(`\r`))):
			i += 2
		case lines && (bytes.HasPrefix(data[i:], []byte("%0A")) || bytes.HasPrefix(data[i:], []byte("%0D")) ||
			bytes.HasPrefix(data[i:], []byte("%0a")) || bytes.HasPrefix(data[i:], []byte("%0d"))):
			i += 3
		default:
			return i
		}
	}
	return i
}

// maxWays is in how many ways a beginning of a value may be read at once.
const maxWays = 8

// units adds to ends where each reading of data[i:] as the byte want ends.
func units(ends []int, data []byte, i int, want byte) []int {
	rest := data[i:]
	for _, size := range [...]int{escape(rest, want), literal(rest, want), run(rest, want, 2), run(rest, want, 4)} {
		if size > 0 && len(ends) < maxWays && !slices.Contains(ends, i+size) {
			ends = append(ends, i+size)
		}
	}
	return ends
}

func literal(data []byte, want byte) int {
	if len(data) > 0 && data[0] == want {
		return 1
	}
	return 0
}

// run is n backslashes that stand for one.
func run(data []byte, want byte, n int) int {
	if want == '\\' && len(data) >= n && strings.Count(string(data[:n]), `\`) == n {
		return n
	}
	return 0
}

// escape reports how many bytes at the beginning of data are an escape of the byte
// want; 0: they are not.
func escape(data []byte, want byte) int {
	if len(data) == 0 {
		return 0
	}
	switch data[0] {
	case '%', '=':
		return digitsOf(data, 1, 2, 16, want)
	case '+':
		if want == ' ' {
			return 1
		}
	case '\\':
		return backslash(data, want)
	case '\'':
		if want == '\'' && bytes.HasPrefix(data, []byte(`'\''`)) {
			return 4
		}
	case '&':
		end := bytes.IndexByte(data[:min(len(data), 12)], ';')
		if end > 0 && html.UnescapeString(string(data[:end+1])) == string(rune(want)) {
			return end + 1
		}
	}
	return 0
}

// backslash is escape for what begins with a backslash.
func backslash(data []byte, want byte) int {
	if len(data) < 2 {
		return 0
	}
	switch c := data[1]; c {
	case 'u':
		return digitsOf(data, 2, 4, 16, want)
	case 'x':
		return digitsOf(data, 2, 2, 16, want)
	case '0', '1', '2', '3':
		for _, n := range []int{3, 4} {
			if size := digitsOf(data, 1, n, 8, want); size > 0 {
				return size
			}
		}
		return 0
	default:
		if c == want && (c < '0' || c > '9') && strings.IndexByte(small+large, c) < 0 {
			return 2
		}
		if at := strings.IndexByte("abfnrtv", c); at >= 0 && "\a\b\f\n\r\t\v"[at] == want {
			return 2
		}
		if c == '\\' { // escaped twice, as JSON within JSON
			if size := backslash(data[1:], want); size > 0 {
				return size + 1
			}
		}
	}
	return 0
}

// digitsOf reports where a number of n digits that is want ends; 0: it is another.
func digitsOf(data []byte, from, n, base int, want byte) int {
	if len(data) < from+n {
		return 0
	}
	if base == 16 && n == 2 {
		var b [1]byte
		if _, err := hex.Decode(b[:], data[from:from+2]); err == nil && b[0] == want {
			return from + n
		}
		return 0
	}
	v, err := strconv.ParseUint(string(data[from:from+n]), base, 32)
	if err != nil || v != uint64(want) {
		return 0
	}
	return from + n
}

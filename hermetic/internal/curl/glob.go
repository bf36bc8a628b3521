package curl

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/internal/fetch"
)

// GlobMax bounds the URLs that one pattern means.
const GlobMax = 10_000

// globbed is one URL of a pattern, and what stood for each of its parts.
type globbed struct {
	url   string
	parts []string // for #1, #2 in -o
}

// Expand reads the {a,b} and [1-3] of a URL. The text of the failure points at
// the mistake as curl's does.
func Expand(s string) ([]globbed, *fetch.Failure) {
	all := []globbed{{}}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`{}[]\`, s[i+1]) >= 0:
			all = appendText(all, s[i+1:i+2])
			i += 2
		case c == '{' || c == '[' && !isV6(s[i:]):
			values, next, f := values(s, i)
			if f != nil {
				return nil, f
			}
			if len(all)*len(values) > GlobMax {
				return nil, globError(s, next, fmt.Sprintf("range overflow (more than %d URLs)", GlobMax))
			}
			all, i = product(all, values), next
		case c == '[':
			end := i + strings.IndexByte(s[i:], ']') + 1
			all = appendText(all, s[i:end])
			i = end
		case c == '}' || c == ']':
			return nil, globError(s, i+1, "unmatched close brace/bracket")
		default:
			end := i + 1
			for end < len(s) && strings.IndexByte(`{}[]\`, s[end]) < 0 {
				end++
			}
			all = appendText(all, s[i:end])
			i = end
		}
	}
	return all, nil
}

func isV6(s string) bool {
	end := strings.IndexByte(s, ']')
	return end > 0 && strings.Count(s[:end], ":") >= 2 && strings.Trim(s[1:end], "0123456789abcdefABCDEF:.%") == ""
}

func appendText(all []globbed, s string) []globbed {
	for i := range all {
		all[i].url += s
	}
	return all
}

func product(all []globbed, values []string) []globbed {
	out := make([]globbed, 0, len(all)*len(values))
	for _, g := range all {
		for _, v := range values {
			out = append(out, globbed{url: g.url + v, parts: append(g.parts[:len(g.parts):len(g.parts)], v)})
		}
	}
	return out
}

// values reads the set or range at i; next is what follows it.
func values(s string, i int) (vs []string, next int, f *fetch.Failure) {
	if s[i] == '[' {
		end := strings.IndexByte(s[i:], ']')
		if end < 0 {
			at := len(s)
			if strings.HasSuffix(s, "-") {
				at++
			}
			return nil, 0, globError(s, at, "bad range")
		}
		inner := s[i+1 : i+end]
		vs, ok := span(inner)
		if !ok && !strings.Contains(inner, "-") {
			return nil, 0, globError(s, i+2, "bad range")
		}
		if !ok {
			return nil, 0, globError(s, i+end+2, "bad range")
		}
		return vs, i + end + 1, nil
	}
	var b strings.Builder
	for at := i + 1; at < len(s); at++ {
		switch c := s[at]; c {
		case '\\':
			if at+1 < len(s) {
				at++
				b.WriteByte(s[at])
			}
		case '{', '[':
			return nil, 0, globError(s, at+1, "nested brace")
		case ']':
			return nil, 0, globError(s, at+1, "unexpected close bracket")
		case ',', '}':
			if b.Len() == 0 && len(vs) == 0 && c == '}' {
				return nil, 0, globError(s, at+1, "empty string within braces")
			}
			vs = append(vs, b.String())
			b.Reset()
			if c == '}' {
				return vs, at + 1, nil
			}
		default:
			b.WriteByte(c)
		}
	}
	return nil, 0, globError(s, i+1, "unmatched brace")
}

// span reads "1-3", "001-100:10", "a-z" or "a-z:2".
func span(s string) ([]string, bool) {
	s, stepText, stepped := strings.Cut(s, ":")
	step := 1
	if stepped {
		n, err := strconv.Atoi(stepText)
		if err != nil || n <= 0 {
			return nil, false
		}
		step = n
	}
	lo, hi, ok := strings.Cut(s, "-")
	if !ok {
		return nil, false
	}
	if len(lo) == 1 && len(hi) == 1 && fetch.IsAlpha(lo[0]) && fetch.IsAlpha(hi[0]) {
		if hi[0] < lo[0] {
			return nil, false
		}
		var vs []string
		for c := int(lo[0]); c <= int(hi[0]); c += step {
			vs = append(vs, string(rune(c)))
		}
		return vs, true
	}
	from, err1 := strconv.ParseUint(lo, 10, 40)
	to, err2 := strconv.ParseUint(hi, 10, 40)
	if err1 != nil || err2 != nil || to < from || (to-from)/uint64(step) > GlobMax {
		return nil, false
	}
	width := 0
	if strings.HasPrefix(lo, "0") {
		width = len(lo)
	}
	var vs []string
	for n := from; n <= to; n += uint64(step) {
		vs = append(vs, fmt.Sprintf("%0*d", width, n))
	}
	return vs, true
}

func globError(s string, at int, what string) *fetch.Failure {
	return fetch.Fail(fetch.ExitURL, "%s in URL position %d:\n%s\n%s^", what, at, s, strings.Repeat(" ", max(0, at-1)))
}

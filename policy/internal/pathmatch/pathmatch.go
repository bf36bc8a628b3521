// Package pathmatch compares the path of an HTTP request with the path of a
// rule. Origins disagree about what a path means; each reading that any of them
// is known to take counts:
//
//	pathmatch.Clean("/v1/..%2fadmin")             // false: malformed
//	pathmatch.Allows("/v1/**", "/v1/a%2fb")       // true under every reading
//	pathmatch.Denies("/admin/**", "/%2561dmin/x") // true under one
//
// It is pure, and linear in the product of both lengths.
package pathmatch

import (
	"fmt"
	"strings"
)

// How origins disagree about a path. A path that one origin reads as one
// thing and another as something else is read in every one of these ways: an
// allow rule must match all readings, a deny rule any.
type reading uint8

const (
	readSplit    reading = 1 << iota // %2F, %5C divide segments
	readCollapse                     // empty segments vanish (//, a final /)
	readStrip                        // ;parameters vanish
	readings     = 8                 // all combinations of the above
)

// CheckPattern reports what is wrong with the path of a rule, and what to write
// instead; both are empty for a good one.
func CheckPattern(p string) (what, fix string) {
	if strings.ContainsAny(p, "?#") {
		return fmt.Sprintf("path %q holds a query or fragment", p), "leave the query out: rules see the path only"
	}
	if !Clean(p) {
		return fmt.Sprintf("path %q is not in one clear form", p), "write the path as the client sends it, without . or .. segments"
	}
	for i := 0; i < len(p); {
		start, end, next := segment(p, i, 0, allowLevels)
		seg := p[start:end]
		if strings.Contains(seg, "*") && seg != "*" && seg != "**" {
			return fmt.Sprintf("path %q: * stands only for whole segments", p), "write * for one whole segment, or ** for any number of them"
		}
		i = next
	}
	return "", ""
}

// Clean reports whether p can be read at all: origin-form, well-formed
// percent-encoding, no control bytes, no backslash, and no segment that any
// reading, decoded however often, takes for "." or "..".
//
// Threat: GET /public/..%2fadmin matches /public/** here and is /admin at the
// origin. No path rule is asked about such a path; it is malformed.
func Clean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c <= ' ' || c == 0x7f || c == '\\' || c == '?' || c == '#':
			return false
		case c == '%':
			if i+2 >= len(p) || !isHex(p[i+1]) || !isHex(p[i+2]) {
				return false
			}
			if b := unhex(p[i+1])<<4 | unhex(p[i+2]); b < ' ' || b == 0x7f {
				return false
			}
		}
	}
	for i := 0; i < len(p); {
		start, end, next := segmentDeep(p, i)
		if dotSegment(p[start:end]) {
			return false
		}
		i = next
	}
	return true
}

// ambiguous reports which readings can differ for p, percent-decoded up to
// levels times.
func ambiguous(p string, levels int) reading {
	var r reading
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '/':
			if i > 0 && (p[i-1] == '/' || i == len(p)-1) {
				r |= readCollapse
			}
		case ';':
			r |= readStrip
		case '%':
			switch b, _ := decode(p, i, levels); b {
			case '/', '\\':
				r |= readSplit | readCollapse
			case ';':
				r |= readStrip
			}
		}
	}
	return r
}

// decode reads one byte at i, percent-decoding up to levels times, and reports
// how many bytes of p it took.
func decode(p string, i, levels int) (b byte, n int) {
	if p[i] != '%' || levels == 0 || i+2 >= len(p) || !isHex(p[i+1]) || !isHex(p[i+2]) {
		return p[i], 1
	}
	b, n = unhex(p[i+1])<<4|unhex(p[i+2]), 3
	for levels--; levels > 0 && b == '%' && i+n+1 < len(p) && isHex(p[i+n]) && isHex(p[i+n+1]); levels-- {
		b = unhex(p[i+n])<<4 | unhex(p[i+n+1])
		n += 2
	}
	return b, n
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// segment cuts the segment that begins at the separator p[i]: its bounds and
// where the next one begins (len(p) at the end).
func segment(p string, i int, r reading, levels int) (start, end, next int) {
	_, n := decode(p, i, levels)
	start = i + n
	j := start
	for j < len(p) {
		b, n := decode(p, j, levels)
		if p[j] == '/' || r&readSplit != 0 && (b == '/' || b == '\\') {
			break
		}
		j += n
	}
	end = j
	if r&readStrip != 0 {
		for k := start; k < end; {
			b, n := decode(p, k, levels)
			if b == ';' {
				end = k
				break
			}
			k += n
		}
	}
	return start, end, j
}

// How often a path is percent-decoded: once to find what an allow rule covers,
// and as often as an origin (or a chain of them) may to find what a deny rule
// covers.
const (
	allowLevels = 1
	deepLevels  = 4
)

// segmentDeep cuts at every separator any decoding finds, ;parameters left out.
func segmentDeep(p string, i int) (start, end, next int) {
	_, n := decode(p, i, deepLevels)
	start = i + n
	end = -1
	j := start
	for j < len(p) {
		b, n := decode(p, j, deepLevels)
		if b == '/' || b == '\\' {
			break
		}
		if b == ';' && end < 0 {
			end = j
		}
		j += n
	}
	if end < 0 {
		end = j
	}
	return start, end, j
}

func dotSegment(seg string) bool {
	dots := 0
	for i := 0; i < len(seg); {
		b, n := decode(seg, i, deepLevels)
		if b != '.' {
			return false
		}
		dots++
		i += n
	}
	return dots == 1 || dots == 2
}

// Allows reports whether pattern covers path under every reading. An allow rule
// asks this.
func Allows(pattern, path string) bool {
	amb := ambiguous(path, allowLevels)
	for r := reading(0); r < readings; r++ {
		if r&^amb == 0 && !matchPath(pattern, path, r, allowLevels) {
			return false
		}
	}
	return true
}

// Denies reports whether pattern covers path under any reading. A deny rule asks
// this.
//
// Threat: a deny rule for /admin/** is passed by /Admin, /%2561dmin, /admin. or
// /admin%20, which some origins take for /admin -> deny rules decode as deep as
// dot segments are looked for, fold case, and ignore dots and spaces at the end
// of a segment. Left over: names that an origin maps by rules of its own.
func Denies(pattern, path string) bool {
	amb := ambiguous(path, deepLevels) | ambiguous(pattern, deepLevels)
	for r := reading(0); r < readings; r++ {
		if r&^amb == 0 && matchPath(pattern, path, r, deepLevels) {
			return true
		}
	}
	return false
}

// matchPath matches segment by segment. ** takes any number of segments, none
// included; on a mismatch the last ** takes one more (linear in the product of
// both lengths, nothing recursive).
func matchPath(pat, path string, r reading, levels int) bool {
	pi, si := skipEmpty(pat, 0, r, levels), skipEmpty(path, 0, r, levels)
	starP, starS := -1, 0
	for si < len(path) {
		sStart, sEnd, sNext := segment(path, si, r, levels)
		if pi < len(pat) {
			pStart, pEnd, pNext := segment(pat, pi, r, levels)
			switch seg := pat[pStart:pEnd]; {
			case seg == "**":
				starP, starS = skipEmpty(pat, pNext, r, levels), si
				pi = starP
				continue
			case seg == "*" && sEnd > sStart, equalSegment(seg, path[sStart:sEnd], levels):
				pi, si = skipEmpty(pat, pNext, r, levels), skipEmpty(path, sNext, r, levels)
				continue
			}
		}
		if starP < 0 {
			return false
		}
		_, _, starNext := segment(path, starS, r, levels)
		starS = skipEmpty(path, starNext, r, levels)
		pi, si = starP, starS
	}
	for pi < len(pat) {
		start, end, next := segment(pat, pi, r, levels)
		if pat[start:end] != "**" {
			return false
		}
		pi = skipEmpty(pat, next, r, levels)
	}
	return true
}

// skipEmpty moves past empty segments when the reading collapses them.
func skipEmpty(p string, i int, r reading, levels int) int {
	if r&readCollapse == 0 {
		return i
	}
	for i < len(p) {
		start, end, next := segment(p, i, r, levels)
		if end > start || next == i {
			return i
		}
		i = next
	}
	return i
}

// equalSegment compares two segments. For an allow rule, escapes are equal to
// what they stand for only where RFC 3986 section 2.3 calls the byte
// unreserved. For a deny rule (levels above allowLevels) all bytes are decoded,
// letters are equal in either case, and dots and spaces at the end do not count.
func equalSegment(a, b string, levels int) bool {
	deny := levels > allowLevels
	if deny {
		a, b = trimSegment(a), trimSegment(b)
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, n := decode(a, i, levels)
		y, m := decode(b, j, levels)
		switch {
		case deny && lowerByte(x) != lowerByte(y), !deny && x != y:
			return false
		case !deny && n != m && !unreserved(x):
			return false
		}
		i, j = i+n, j+m
	}
	return i == len(a) && j == len(b)
}

// trimSegment cuts dots and spaces, in any encoding, off the end of seg. A
// segment of nothing else stays as it is.
func trimSegment(seg string) string {
	end := 0
	for i := 0; i < len(seg); {
		b, n := decode(seg, i, deepLevels)
		i += n
		if b != '.' && b != ' ' {
			end = i
		}
	}
	if end == 0 {
		return seg
	}
	return seg[:end]
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

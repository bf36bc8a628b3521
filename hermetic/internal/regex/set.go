package regex

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// set is a set of characters: ranges, sorted and apart, and a bitmap of ASCII.
type set struct {
	ranges []rune // pairs
	ascii  [2]uint64
}

func (s *set) has(r rune) bool {
	if r < 128 {
		return s.ascii[r>>6]&(1<<(r&63)) != 0
	}
	lo, hi := 0, len(s.ranges)/2
	for lo < hi {
		m := (lo + hi) / 2
		switch {
		case r < s.ranges[2*m]:
			hi = m
		case r > s.ranges[2*m+1]:
			lo = m + 1
		default:
			return true
		}
	}
	return false
}

// newSet makes a set of pairs in any order.
func newSet(pairs []rune) *set {
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		spans = append(spans, span{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) })
	s := &set{}
	for _, p := range spans {
		if n := len(s.ranges); n > 0 && p.lo <= s.ranges[n-1]+1 {
			s.ranges[n-1] = max(s.ranges[n-1], p.hi)
			continue
		}
		s.ranges = append(s.ranges, p.lo, p.hi)
	}
	for i := 0; i < len(s.ranges); i += 2 {
		for r := s.ranges[i]; r <= s.ranges[i+1] && r < 128; r++ {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

// not is what is valid and not in the sorted pairs of s; limit is the last
// character there is.
func (s *set) not(limit rune) *set {
	var pairs []rune
	next := rune(0)
	for i := 0; i < len(s.ranges); i += 2 {
		if lo := s.ranges[i]; lo > next {
			pairs = append(pairs, next, min(lo-1, limit))
		}
		next = s.ranges[i+1] + 1
		if next > limit {
			break
		}
	}
	if next <= limit {
		pairs = append(pairs, next, limit)
	}
	return newSet(pairs)
}

// foldPairs adds the other case of everything in pairs.
func foldPairs(pairs []rune) []rune {
	out := slices.Clone(pairs)
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], min(pairs[i+1], utf8.MaxRune)
		if hi-lo > 0x3000 { // nearly everything: letters above are the same again
			out = append(out, foldWide(lo, hi)...)
			continue
		}
		for r := lo; r <= hi; r++ {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				out = append(out, f, f)
			}
		}
	}
	return out
}

// foldWide is the other cases of a wide range, by walking the letters that
// have one.
func foldWide(lo, hi rune) []rune {
	var out []rune
	for _, c := range unicode.CaseRanges {
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			if r < lo || r > hi {
				continue
			}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				out = append(out, f, f)
			}
		}
	}
	return out
}

// tablePairs are the ranges of tables, less those of without.
func tablePairs(tables ...*unicode.RangeTable) []rune {
	var out []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return out
}

// class is a class of POSIX in pairs; nil when there is none of that name.
// ascii leaves it to the characters below 128.
func class(name string, ascii bool) []rune {
	basic := map[string][]rune{
		"alpha": {'A', 'Z', 'a', 'z'}, "digit": {'0', '9'}, "alnum": {'0', '9', 'A', 'Z', 'a', 'z'},
		"upper": {'A', 'Z'}, "lower": {'a', 'z'}, "space": {'\t', '\r', ' ', ' '}, "blank": {'\t', '\t', ' ', ' '},
		"punct": {'!', '/', ':', '@', '[', '`', '{', '~'}, "print": {' ', '~'}, "graph": {'!', '~'},
		"cntrl": {0, 31, 127, 127}, "xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
	}[name]
	if basic == nil || ascii {
		return basic
	}
	return append(basic, wide(name)...)
}

// wide is what a class has above ASCII, as the C.UTF-8 locale of glibc has it.
func wide(name string) []rune {
	switch name {
	case "alpha", "alnum":
		return above(tablePairs(unicode.L, unicode.Nd, unicode.Nl, unicode.Other_Alphabetic))
	case "upper":
		return above(tablePairs(unicode.Lu, unicode.Lt, unicode.Other_Uppercase))
	case "lower":
		return above(tablePairs(unicode.Ll, unicode.Lt, unicode.Other_Lowercase))
	case "space":
		return []rune{0x1680, 0x1680, 0x2000, 0x2006, 0x2008, 0x200a, 0x2028, 0x2029, 0x205f, 0x205f, 0x3000, 0x3000}
	case "blank":
		return []rune{0x1680, 0x1680, 0x2000, 0x2006, 0x2008, 0x200a, 0x205f, 0x205f, 0x3000, 0x3000}
	case "cntrl":
		return []rune{0x80, 0x9f, 0x2028, 0x2029}
	case "print":
		return above(tablePairs(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs, unicode.Cf, unicode.Co))
	case "graph":
		return newSet(above(tablePairs(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf, unicode.Co, newTable(0xa0, 0x2007, 0x202f)))).ranges
	case "punct":
		graph := newSet(wide("graph"))
		alnum := newSet(append(wide("alnum"), 0, 0x7f))
		rest := append(alnum.ranges, graph.not(utf8.MaxRune).ranges...)
		return newSet(rest).not(utf8.MaxRune).ranges
	}
	return nil
}

func newTable(runes ...uint16) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for _, r := range runes {
		t.R16 = append(t.R16, unicode.Range16{Lo: r, Hi: r, Stride: 1})
	}
	return t
}

// above cuts ASCII off.
func above(pairs []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] >= 128 {
			out = append(out, max(pairs[i], 128), pairs[i+1])
		}
	}
	return out
}

// wordRune reports whether r is part of a word: \w.
func wordRune(r rune, ascii bool) bool {
	switch {
	case r < 128:
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	case ascii || r > utf8.MaxRune:
		return false
	}
	return unicode.In(r, unicode.L, unicode.Nd, unicode.Nl, unicode.Other_Alphabetic)
}

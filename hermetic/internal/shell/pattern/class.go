package pattern

import (
	"strings"
	"unicode"
)

type class struct {
	not    bool
	ranges [][2]rune
	named  []func(rune) bool
	fold   bool
}

func (c *class) has(r rune) bool {
	if c.in(r) || c.fold && (c.in(unicode.ToLower(r)) || c.in(unicode.ToUpper(r))) {
		return !c.not
	}
	return c.not
}

func (c *class) in(r rune) bool {
	for _, x := range c.ranges {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	for _, f := range c.named {
		if r >= 0 && f(r) {
			return true
		}
	}
	return false
}

// readClass reads the bracket expression at text[at]. ok is false if it has no
// end: then the bracket is an ordinary character.
func readClass(text string, at int, fold bool) (c *class, end int, ok bool) {
	c = &class{fold: fold}
	at++
	if at < len(text) && (text[at] == '!' || text[at] == '^') {
		c.not = true
		at++
	}
	for first := true; at < len(text); first = false {
		if text[at] == ']' && !first {
			return c, at + 1, true
		}
		if name, e, found := between(text, at, ':'); found {
			f := Named(name)
			if f == nil {
				f = func(rune) bool { return false }
			}
			c.named = append(c.named, f)
			at = e
			continue
		}
		var lo, hi rune
		lo, at = member(text, at)
		hi = lo
		if at+1 < len(text) && text[at] == '-' && text[at+1] != ']' {
			hi, at = member(text, at+1)
		}
		c.ranges = append(c.ranges, [2]rune{lo, hi})
	}
	return nil, 0, false
}

// member is one character between brackets.
func member(text string, at int) (r rune, end int) {
	for _, mark := range []byte{'.', '='} {
		if name, e, ok := between(text, at, mark); ok && name != "" {
			r, _ = decode(name)
			return r, e
		}
	}
	if text[at] == '\\' && at+1 < len(text) {
		at++
	}
	r, size := decode(text[at:])
	return r, at + size
}

// between reads "[:name:]", "[=c=]" and "[.c.]".
func between(text string, at int, mark byte) (name string, end int, ok bool) {
	if at+3 >= len(text) || text[at] != '[' || text[at+1] != mark {
		return "", 0, false
	}
	i := strings.Index(text[at+2:], string(mark)+"]")
	if i < 0 {
		return "", 0, false
	}
	return text[at+2 : at+2+i], at + 2 + i + 2, true
}

// Named is a character class (alpha, digit, ...) of the C.UTF-8 locale; nil if
// there is none of that name.
func Named(name string) func(rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter
	case "digit":
		return func(r rune) bool { return '0' <= r && r <= '9' }
	case "alnum":
		return func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "upper":
		return unicode.IsUpper
	case "lower":
		return unicode.IsLower
	case "space":
		return unicode.IsSpace
	case "blank":
		return func(r rune) bool { return r == ' ' || r == '\t' }
	case "punct":
		return func(r rune) bool {
			return r < 128 && r > 32 && r != 127 && !unicode.IsLetter(r) && !unicode.IsDigit(r) ||
				r >= 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r))
		}
	case "cntrl":
		return unicode.IsControl
	case "graph":
		return func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	case "print":
		return unicode.IsPrint
	case "xdigit":
		return func(r rune) bool {
			return '0' <= r && r <= '9' || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
		}
	case "word":
		return func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "ascii":
		return func(r rune) bool { return 0 <= r && r < 128 }
	}
	return nil
}

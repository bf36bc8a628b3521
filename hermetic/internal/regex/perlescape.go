package regex

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// perlSet reads an escape that is a class; nil: it is none.
func (p *parser) perlSet() (*set, error) {
	c := p.src[p.pos]
	var pairs []rune
	switch c | 0x20 {
	case 'd':
		pairs = class("digit", true)
	case 'w':
		pairs = append([]rune{'_', '_'}, class("alnum", true)...)
	case 's':
		pairs = class("space", true)
	case 'h':
		pairs = append([]rune{0xa0, 0xa0, 0x2007, 0x2007, 0x202f, 0x202f, 0x180e, 0x180e}, class("blank", false)...)
	case 'v':
		pairs = []rune{'\n', '\r', 0x85, 0x85, 0x2028, 0x2029}
	case 'n':
		if c == 'n' {
			return nil, nil
		}
		pairs = []rune{'\n', '\n'}
	case 'p':
		return p.perlProperty(c == 'P')
	default:
		return nil, nil
	}
	p.pos++
	s := newSet(pairs)
	if c < 'a' {
		s = s.not(p.limit())
	}
	return s, nil
}

// perlProperty reads \pL, \p{Lu}, \p{^Greek}.
func (p *parser) perlProperty(negated bool) (*set, error) {
	p.pos++
	rest := p.src[p.pos:]
	name, ok := "", rest != ""
	if ok && rest[0] != '{' {
		name = rest[:1]
		p.pos++
	} else if ok {
		if name, _, ok = strings.Cut(rest[1:], "}"); ok {
			p.pos += len(name) + 2
		}
	}
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
	}
	var tables []*unicode.RangeTable
	if t := unicode.Categories[name]; t != nil {
		tables = append(tables, t)
	} else if t := unicode.Scripts[name]; t != nil {
		tables = append(tables, t)
	} else if name == "L&" {
		tables = append(tables, unicode.Lu, unicode.Ll, unicode.Lt)
	}
	s := newSet(tablePairs(tables...))
	switch {
	case name == "Any":
		s = p.dot(false)
	case !ok || tables == nil:
		return nil, errPerlProperty
	}
	if negated {
		s = s.not(p.limit())
	}
	return s, nil
}

// perlRune reads an escape that is one character.
func (p *parser) perlRune(inBracket bool) (rune, error) {
	c := p.src[p.pos]
	if at := strings.IndexByte("aefnrt", c); at >= 0 {
		p.pos++
		return rune("\a\x1b\f\n\r\t"[at]), nil
	}
	switch {
	case c == 'b' && inBracket:
		p.pos++
		return '\b', nil
	case '0' <= c && c <= '7':
		r, _ := p.digits(8, 3)
		return r, nil
	case c == 'x' || c == 'o':
		return p.perlCode()
	case c == 'c' && p.pos+1 < len(p.src):
		r := rune(strings.ToUpper(p.src[p.pos+1 : p.pos+2])[0] ^ 0x40)
		p.pos += 2
		return r, nil
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return 0, errPerlEscape
	}
	return p.next(), nil
}

// perlCode reads \x41, \x{1F600} or \o{101}.
func (p *parser) perlCode() (rune, error) {
	base := 16
	if p.src[p.pos] == 'o' {
		base = 8
	}
	p.pos++
	if !p.looking("{") {
		if base == 8 {
			return 0, errPerlEscape
		}
		r, _ := p.digits(16, 2)
		if r >= invalid {
			r -= invalid
		}
		return r, nil
	}
	text, _, ok := strings.Cut(p.src[p.pos+1:], "}")
	n, err := strconv.ParseUint(text, base, 32)
	if !ok || err != nil || n > utf8.MaxRune {
		return 0, errors.New(`character code point value in \x{} or \o{} is too large`)
	}
	p.pos += len(text) + 2
	return rune(n), nil
}

package regex

import (
	"strings"
	"unicode/utf8"
)

// escape reads what follows a backslash outside brackets.
func (p *parser) escape() (*node, error) {
	p.pos++
	if p.pos >= len(p.src) {
		return nil, errTrailing
	}
	c := p.src[p.pos]
	if n := p.gnuEscape(c); n != nil {
		p.pos++
		return n, nil
	}
	if '1' <= c && c <= '9' && !p.d.awk {
		p.pos++
		return p.backref(int(c - '0'))
	}
	if r, ok := p.charEscape(); ok {
		return p.char(r), nil
	}
	return p.char(p.next()), nil
}

// gnuEscape is the class or place that \c stands for; nil: none.
func (p *parser) gnuEscape(c byte) *node {
	switch c {
	case 'w', 'W':
		return p.classNode([]rune{'_', '_'}, "alnum", c == 'W')
	case 's', 'S':
		return p.classNode(nil, "space", c == 'S')
	case '<':
		return p.assert(wordStart)
	case '>':
		return p.assert(wordEnd)
	case 'b':
		if p.d.awk {
			return nil
		}
		return p.assert(wordEdge)
	case 'y':
		if !p.d.awk {
			return nil
		}
		return p.assert(wordEdge)
	case 'B':
		return p.assert(notWordEdge)
	case '`':
		return p.assert(textStart)
	case '\'':
		return p.assert(textEnd)
	}
	return nil
}

// classNode is a class and some more, or all that is not in it.
func (p *parser) classNode(more []rune, name string, negated bool) *node {
	s := newSet(append(more, class(name, p.opts.Bytes)...))
	if negated {
		s = s.not(p.limit())
	}
	return &node{op: opSet, set: s}
}

// limit is the last character there is.
func (p *parser) limit() rune {
	if p.opts.Bytes {
		return 255
	}
	return utf8.MaxRune
}

// dot is every character, but perhaps not the newline.
func (p *parser) dot(notNewline bool) *set {
	if notNewline {
		return newSet([]rune{0, '\n' - 1, '\n' + 1, p.limit()})
	}
	return newSet([]rune{0, p.limit()})
}

func (p *parser) backref(n int) (*node, error) {
	n += p.first
	if !p.done[n] {
		return nil, errBackref
	}
	p.backrefs = true
	return &node{op: opBack, n: n, fold: p.opts.Fold}, nil
}

// charEscape reads an escape of sed or awk that is one character.
func (p *parser) charEscape() (rune, bool) {
	c := p.src[p.pos]
	if !p.d.sed && !p.d.awk {
		return 0, false
	}
	if at := strings.IndexByte("afnrtv", c); at >= 0 {
		p.pos++
		return rune("\a\f\n\r\t\v"[at]), true
	}
	switch {
	case p.d.awk && c == 'b':
		p.pos++
		return '\b', true
	case p.d.awk && '0' <= c && c <= '7':
		return p.digits(8, 3)
	case p.d.awk && c == 'x', p.d.sed && c == 'x':
		return p.code(16, 2)
	case p.d.sed && c == 'd':
		return p.code(10, 3)
	case p.d.sed && c == 'o':
		return p.code(8, 3)
	case p.d.sed && c == 'c' && p.pos+1 < len(p.src):
		r := rune(strings.ToUpper(p.src[p.pos+1 : p.pos+2])[0] ^ 0x40)
		p.pos += 2
		return r, true
	}
	return 0, false
}

// code reads the digits after a letter; without any it is no escape.
func (p *parser) code(base, most int) (rune, bool) {
	p.pos++
	r, ok := p.digits(base, most)
	if !ok {
		p.pos--
	}
	return r, ok
}

func (p *parser) digits(base, most int) (rune, bool) {
	n, count := 0, 0
	for count < most && p.pos < len(p.src) {
		d := digit(p.src[p.pos])
		if d >= base {
			break
		}
		n = n*base + d
		count++
		p.pos++
	}
	n &= 0xff
	if n >= utf8.RuneSelf && !p.opts.Bytes {
		return invalid + rune(n), count > 0
	}
	return rune(n), count > 0
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}

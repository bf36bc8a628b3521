package regex

import (
	"strings"
	"unicode/utf8"
)

// bracket reads what follows "[".
func (p *parser) bracket() (*node, error) {
	start := p.pos
	negated := p.looking("^")
	if negated {
		p.pos++
	}
	var pairs []rune
	for first := true; ; first = false {
		if p.pos >= len(p.src) {
			return nil, errBracket
		}
		if p.looking("]") && !first {
			p.pos++
			break
		}
		more, err := p.element()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, more...)
	}
	if text := p.src[start : p.pos-1]; (p.d.grep || p.d.sed) && len(text) > 2 && text[0] == ':' && text[len(text)-1] == ':' && class(text[1:len(text)-1], true) != nil {
		return nil, errClassForm
	}
	return &node{op: opSet, set: p.finish(pairs, negated)}, nil
}

func (p *parser) finish(pairs []rune, negated bool) *set {
	if p.opts.Fold {
		pairs = foldPairs(pairs)
		if p.opts.Bytes {
			pairs = ascii(pairs)
		}
	}
	if !negated {
		return newSet(pairs)
	}
	if p.opts.DotLine {
		pairs = append(pairs, '\n', '\n')
	}
	return newSet(pairs).not(p.limit())
}

// element reads one character, class or range of a bracket expression.
func (p *parser) element() ([]rune, error) {
	lo, pairs, err := p.member()
	if err != nil || pairs != nil && !p.rangeNext() {
		return pairs, err
	}
	if !p.rangeNext() {
		return []rune{lo, lo}, nil
	}
	if pairs != nil {
		return nil, errRange
	}
	p.pos++ // the "-"
	hi, pairs, err := p.member()
	switch {
	case err != nil:
		return nil, err
	case pairs != nil, hi < lo:
		return nil, errRange
	}
	return p.span(lo, hi), nil
}

// span is a range; from a character to a byte that is none it is both ends.
func (p *parser) span(lo, hi rune) []rune {
	if lo < invalid && hi >= invalid {
		return []rune{lo, lo, hi, hi}
	}
	return []rune{lo, hi}
}

// rangeNext reports whether "-" and an end of a range follow.
func (p *parser) rangeNext() bool {
	return p.looking("-") && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']'
}

// member reads one character, or a class as pairs.
func (p *parser) member() (r rune, pairs []rune, err error) {
	if p.pos >= len(p.src) {
		return 0, nil, errBracket
	}
	if p.src[p.pos] == '[' && p.pos+1 < len(p.src) && strings.IndexByte(":.=", p.src[p.pos+1]) >= 0 {
		return p.named()
	}
	if p.src[p.pos] == '\\' && (p.d.sed || p.d.awk) && p.pos+1 < len(p.src) {
		at := p.pos
		p.pos++
		if r, ok := p.charEscape(); ok {
			return r, nil, nil
		}
		if p.d.awk {
			return p.next(), nil, nil
		}
		p.pos = at
	}
	return p.next(), nil, nil
}

// named reads "[:alpha:]", "[.x.]" or "[=x=]".
func (p *parser) named() (r rune, pairs []rune, err error) {
	kind := p.src[p.pos+1]
	name, _, ok := strings.Cut(p.src[p.pos+2:], string(kind)+"]")
	if !ok || kind == ':' && strings.ContainsAny(name, "]") && !strings.Contains(p.src[p.pos+2:], ":]") {
		return 0, nil, errBracket
	}
	p.pos += 4 + len(name)
	if kind == ':' {
		if p.opts.Fold && (name == "upper" || name == "lower") {
			name = "alpha"
		}
		if pairs = class(name, p.opts.Bytes); pairs == nil {
			return 0, nil, errClass
		}
		return 0, pairs, nil
	}
	r, size := utf8.DecodeRuneInString(name)
	if name == "" || size != len(name) {
		return 0, nil, errCollate
	}
	if kind == '=' {
		return 0, []rune{r, r}, nil
	}
	return r, nil, nil
}

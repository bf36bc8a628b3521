package regex

import (
	"errors"
	"strings"
)

// perlGroup reads what follows "(".
func (p *parser) perlGroup() (*node, error) {
	if strings.HasPrefix(p.src[p.pos:], "*") {
		return nil, errPerlHere
	}
	if !p.take("?", false) {
		return p.perlCapture("")
	}
	rest := p.src[p.pos:]
	for _, look := range []struct {
		text            string
		behind, negated bool
	}{{"=", false, false}, {"!", false, true}, {"<=", true, false}, {"<!", true, true}} {
		if strings.HasPrefix(rest, look.text) {
			p.pos += len(look.text)
			return p.perlLook(look.behind, look.negated)
		}
	}
	switch {
	case strings.HasPrefix(rest, "#"):
		at := strings.IndexByte(rest, ')')
		if at < 0 {
			return nil, errPerlComment
		}
		p.pos += at + 1
		return nil, nil
	case strings.HasPrefix(rest, ">"):
		p.pos++
		n, err := p.perlInside()
		return &node{op: opAtomic, subs: []*node{n}}, err
	case strings.HasPrefix(rest, "|"):
		p.pos++
		return p.perlInside()
	case strings.HasPrefix(rest, "P="):
		return p.perlNamedEqual()
	case strings.HasPrefix(rest, "P<"), strings.HasPrefix(rest, "<"), strings.HasPrefix(rest, "'"):
		return p.perlNamedGroup()
	case rest != "" && strings.IndexByte("R(&+0123456789CP", rest[0]) >= 0:
		return nil, errPerlHere
	}
	return p.perlFlags()
}

// perlInside reads alternatives and the ")" after them.
func (p *parser) perlInside() (*node, error) {
	n, err := p.perlAlternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")", false) {
		return nil, errPerlParen
	}
	return n, nil
}

func (p *parser) perlCapture(name string) (*node, error) {
	p.group++
	me := p.group
	if name != "" {
		if p.perl.names[name] != 0 {
			return nil, errors.New("two named subpatterns have the same name (PCRE2_DUPNAMES not set)")
		}
		p.perl.names[name] = me
	}
	n, err := p.perlInside()
	return &node{op: opGroup, n: me, subs: []*node{n}}, err
}

func (p *parser) perlNamedEqual() (*node, error) {
	name, _, ok := strings.Cut(p.src[p.pos+2:], ")")
	n := p.perl.names[name]
	if !ok || n == 0 {
		return nil, errPerlBackref
	}
	p.pos += len(name) + 3
	return p.perlBack(n - p.first), nil
}

func (p *parser) perlNamedGroup() (*node, error) {
	p.take("P", false)
	closing := ">"
	if p.src[p.pos] == '\'' {
		closing = "'"
	}
	name, _, ok := strings.Cut(p.src[p.pos+1:], closing)
	if !ok || name == "" || strings.Trim(name, "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return nil, errors.New("syntax error in subpattern name (missing terminator?)")
	}
	p.pos += len(name) + 2
	return p.perlCapture(name)
}

func (p *parser) perlLook(behind, negated bool) (*node, error) {
	n, err := p.perlInside()
	if err != nil {
		return nil, err
	}
	if behind {
		for _, alt := range alternatives(n) {
			if lo, hi := width(alt); hi != lo {
				return nil, errPerlBehind
			}
		}
	}
	return &node{op: opLook, subs: []*node{n}, behind: behind, negated: negated}, nil
}

func alternatives(n *node) []*node {
	if n.op == opAlt {
		return n.subs
	}
	return []*node{n}
}

// perlFlags reads "(?i)" or "(?i-s:...)"; "(?:" is none at all.
func (p *parser) perlFlags() (*node, error) {
	was := p.perl
	on := true
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		switch c {
		case '-':
			on = false
		case '^':
			p.perl.fold, p.perl.dotall, p.perl.extended = false, false, false
		case 'i':
			p.perl.fold = on
		case 's':
			p.perl.dotall = on
		case 'x':
			p.perl.extended = on
		case 'U':
			p.perl.ungreedy = on
		case 'm', 'n', 'J': // a record is one line; named groups are unique
		case ')':
			return nil, nil // till the end of the group around
		case ':':
			n, err := p.perlInside()
			was.names, was.forward = p.perl.names, p.perl.forward
			p.perl = was
			return n, err
		default:
			return nil, errPerlGroup
		}
	}
	return nil, errPerlParen
}

// perlBracket reads what follows "[".
func (p *parser) perlBracket() (*node, error) {
	negated := p.take("^", false)
	var pairs []rune
	for first := true; ; first = false {
		switch {
		case p.pos >= len(p.src):
			return nil, errPerlBracket
		case p.looking("]") && !first:
			p.pos++
			was := p.opts
			p.opts.Fold, p.opts.DotLine = p.perl.fold, false
			s := p.finish(pairs, negated)
			p.opts = was
			return &node{op: opSet, set: s}, nil
		}
		more, err := p.perlElement()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, more...)
	}
}

// perlElement reads a character, class or range of a bracket expression.
func (p *parser) perlElement() ([]rune, error) {
	lo, pairs, err := p.perlMember()
	if err != nil || pairs != nil || !p.rangeNext() {
		if pairs == nil {
			pairs = []rune{lo, lo}
		}
		return pairs, err
	}
	at := p.pos
	p.pos++
	hi, pairs, err := p.perlMember()
	switch {
	case err != nil:
		return nil, err
	case pairs != nil: // "a-\d": the "-" is one
		p.pos = at + 1
		return []rune{lo, lo, '-', '-'}, nil
	case hi < lo:
		return nil, errPerlRange
	}
	return []rune{lo, hi}, nil
}

func (p *parser) perlMember() (r rune, pairs []rune, err error) {
	if p.pos >= len(p.src) {
		return 0, nil, errPerlBracket
	}
	if p.looking("[:") {
		name, _, ok := strings.Cut(p.src[p.pos+2:], ":]")
		if ok && strings.Trim(name, "^abcdefghijklmnopqrstuvwxyz") == "" {
			p.pos += len(name) + 4
			pairs, err = perlClass(name, p.limit())
			return 0, pairs, err
		}
	}
	if p.src[p.pos] != '\\' {
		return p.next(), nil, nil
	}
	p.pos++
	if p.pos >= len(p.src) {
		return 0, nil, errPerlEnd
	}
	if s, err := p.perlSet(); s != nil || err != nil {
		if s != nil {
			pairs = s.ranges
		}
		return 0, pairs, err
	}
	r, err = p.perlRune(true)
	return r, nil, err
}

func perlClass(name string, limit rune) ([]rune, error) {
	bare, negated := strings.CutPrefix(name, "^")
	pairs := class(bare, true)
	if bare == "word" {
		pairs = append([]rune{'_', '_'}, class("alnum", true)...)
	}
	switch {
	case pairs == nil:
		return nil, errPerlClass
	case negated:
		return newSet(pairs).not(limit).ranges, nil
	}
	return pairs, nil
}

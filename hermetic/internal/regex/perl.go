package regex

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// The errors of PCRE2, in its words.
var (
	errPerlClose    = errors.New("unmatched closing parenthesis")
	errPerlParen    = errors.New("missing closing parenthesis")
	errPerlBracket  = errors.New("missing terminating ] for character class")
	errPerlRepeat   = errors.New("quantifier does not follow a repeatable item")
	errPerlOrder    = errors.New("numbers out of order in {} quantifier")
	errPerlNumber   = errors.New("number too big in {} quantifier")
	errPerlRange    = errors.New("range out of order in character class")
	errPerlEnd      = errors.New(`\ at end of pattern`)
	errPerlClass    = errors.New("unknown POSIX class name")
	errPerlGroup    = errors.New("unrecognized character after (? or (?-")
	errPerlBackref  = errors.New("reference to non-existent subpattern")
	errPerlProperty = errors.New(`unknown property name after \P or \p`)
	errPerlComment  = errors.New("missing ) after (?# comment")
	errPerlEscape   = errors.New(`unrecognized character follows \`)
	errPerlBehind   = errors.New("lookbehind assertion is not fixed length")
	errPerlHere     = errors.New("recursion, conditions, subroutines and callouts are not supported here")
)

// perlState is what a parser of Perl's dialect remembers.
type perlState struct {
	fold, dotall, extended, ungreedy, lines bool
	names                                   map[string]int
	quote                                   bool // between \Q and \E
	forward                                 int  // the largest group referred to
}

func (p *parser) parsePerl() (*node, error) {
	p.perl.fold, p.perl.lines = p.opts.Fold, p.opts.Lines
	p.perl.names = map[string]int{}
	n, err := p.perlAlternatives()
	switch {
	case err != nil:
		return nil, err
	case p.pos < len(p.src):
		return nil, errPerlClose
	case p.perl.forward > p.group:
		return nil, errPerlBackref
	}
	return n, nil
}

func (p *parser) perlAlternatives() (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxSubs {
		return nil, errTooBig
	}
	flags := p.perl
	var alts []*node
	for {
		n, err := p.perlBranch()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.take("|", false) {
			flags.names, flags.forward = p.perl.names, p.perl.forward
			p.perl = flags
			return alternate(alts), nil
		}
	}
}

func (p *parser) perlBranch() (*node, error) {
	var subs []*node
	for p.pos < len(p.src) {
		if !p.perl.quote && (p.src[p.pos] == '|' || p.src[p.pos] == ')') {
			break
		}
		n, err := p.perlPiece()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.perlRepeats(n); err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
	return concat(subs), nil
}

// perlPiece reads one thing; nil: something that matches nothing, as a comment.
func (p *parser) perlPiece() (*node, error) {
	c := p.src[p.pos]
	switch {
	case p.perl.quote:
		if p.take(`\E`, false) {
			p.perl.quote = false
			return nil, nil
		}
	case p.perl.extended && (c == ' ' || '\t' <= c && c <= '\r'):
		p.pos++
		return nil, nil
	case p.perl.extended && c == '#':
		_, rest, _ := strings.Cut(p.src[p.pos:], "\n")
		p.pos = len(p.src) - len(rest)
		return nil, nil
	case c == '*' || c == '+' || c == '?':
		return nil, errPerlRepeat
	case c == '(':
		p.pos++
		return p.perlGroup()
	case c == '[':
		p.pos++
		return p.perlBracket()
	case c == '.':
		p.pos++
		return &node{op: opSet, set: p.dot(!p.perl.dotall)}, nil
	case c == '^':
		p.pos++
		return p.assert(lineStart), nil
	case c == '$':
		p.pos++
		return p.assert(lineEnd), nil
	case c == '\\':
		p.pos++
		return p.perlEscape()
	}
	return p.perlChar(p.next()), nil
}

func (p *parser) perlChar(r rune) *node {
	was := p.opts.Fold
	p.opts.Fold = p.perl.fold
	n := p.char(r)
	p.opts.Fold = was
	return n
}

// perlRepeats reads one quantifier after n.
func (p *parser) perlRepeats(n *node) (*node, error) {
	if p.perl.quote && p.take(`\E`, false) {
		p.perl.quote = false
	}
	if p.perl.quote || p.pos >= len(p.src) {
		return n, nil
	}
	lo, hi := 0, -1
	switch {
	case p.take("*", false):
	case p.take("+", false):
		lo = 1
	case p.take("?", false):
		hi = 1
	default:
		var ok bool
		var err error
		if lo, hi, ok, err = p.perlInterval(); !ok || err != nil {
			return n, err
		}
	}
	if n.op == opAssert || n.op == opKeep { // a place, any number of times
		p.take("?", false)
		if lo > 0 {
			return n, nil
		}
		return &node{op: opEmpty}, nil
	}
	n = &node{op: opRepeat, subs: []*node{n}, min: lo, max: hi, lazy: p.perl.ungreedy}
	switch {
	case p.take("?", false):
		n.lazy = !n.lazy
	case p.take("+", false):
		n = &node{op: opAtomic, subs: []*node{n}}
	}
	if p.pos < len(p.src) && strings.IndexByte("*+?", p.src[p.pos]) >= 0 {
		return nil, errPerlRepeat
	}
	return n, nil
}

// perlInterval reads "{n}", "{n,}" or "{n,m}"; anything else is text.
func (p *parser) perlInterval() (lo, hi int, ok bool, err error) {
	if !p.looking("{") {
		return 0, 0, false, nil
	}
	text, _, found := strings.Cut(p.src[p.pos+1:], "}")
	first, second, comma := strings.Cut(text, ",")
	lo, good := number(first)
	hi, good2 := number(second)
	if !found || first == "" || !good || !good2 {
		return 0, 0, false, nil
	}
	switch {
	case !comma:
		hi = lo
	case second == "":
		hi = -1
	}
	switch {
	case lo > maxDup, hi > maxDup:
		return 0, 0, false, errPerlNumber
	case hi >= 0 && hi < lo:
		return 0, 0, false, errPerlOrder
	}
	p.pos += len(text) + 2
	return lo, hi, true, nil
}

// perlEscape reads what follows a backslash outside brackets.
func (p *parser) perlEscape() (*node, error) {
	if p.pos >= len(p.src) {
		return nil, errPerlEnd
	}
	c := p.src[p.pos]
	if places := "AzZbBG"; strings.IndexByte(places, c) >= 0 {
		p.pos++
		return p.assert([]assertion{textStart, textEnd, perlEnd, wordEdge, notWordEdge, textStart}[strings.IndexByte(places, c)]), nil
	}
	switch c {
	case 'K':
		p.pos++
		return &node{op: opKeep}, nil
	case 'Q':
		p.pos++
		p.perl.quote = true
		return nil, nil
	case 'E':
		p.pos++
		return nil, nil
	case 'R':
		p.pos++
		crlf := concat([]*node{{op: opRune, r: '\r'}, {op: opRune, r: '\n'}})
		any := &node{op: opSet, set: newSet([]rune{'\n', '\r', 0x85, 0x85, 0x2028, 0x2029})}
		return &node{op: opAtomic, subs: []*node{alternate([]*node{crlf, any})}}, nil
	case 'X':
		p.pos++
		mark := &node{op: opSet, set: newSet(tablePairs(unicode.M))}
		return concat([]*node{{op: opSet, set: p.dot(false)}, {op: opRepeat, subs: []*node{mark}, max: -1}}), nil
	case 'g', 'k':
		return p.perlNamedBack()
	}
	if '1' <= c && c <= '9' {
		return p.perlDigitBack()
	}
	if s, err := p.perlSet(); s != nil || err != nil {
		return &node{op: opSet, set: s}, err
	}
	r, err := p.perlRune(false)
	return p.perlChar(r), err
}

// perlDigitBack reads \1; what is more than nine and no group is octal.
func (p *parser) perlDigitBack() (*node, error) {
	at := p.pos
	for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' && p.pos-at < 4 {
		p.pos++
	}
	n, _ := number(p.src[at:p.pos])
	if n >= 10 && n > p.group-p.first && p.src[at] < '8' {
		p.pos = at
		r, _ := p.digits(8, 3)
		return p.perlChar(r), nil
	}
	return p.perlBack(n), nil
}

func (p *parser) perlBack(n int) *node {
	p.backrefs = true
	p.perl.forward = max(p.perl.forward, n+p.first)
	return &node{op: opBack, n: n + p.first, fold: p.perl.fold}
}

// perlNamedBack reads \g1 \g{1} \g{-1} \g{name} \k<name> \k'name' \k{name}.
func (p *parser) perlNamedBack() (*node, error) {
	p.pos++
	rest := p.src[p.pos:]
	name := ""
	switch {
	case rest == "":
		return nil, errPerlBackref
	case strings.IndexByte("{<'", rest[0]) >= 0:
		closing := map[byte]string{'{': "}", '<': ">", '\'': "'"}[rest[0]]
		var ok bool
		if name, _, ok = strings.Cut(rest[1:], closing); !ok {
			return nil, errPerlBackref
		}
		p.pos += len(name) + 2
	default:
		n := len(rest) - len(strings.TrimLeft(rest, "-0123456789"))
		name = rest[:n]
		p.pos += n
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 {
			n += p.group - p.first + 1
		}
		if n <= 0 || n > maxDup {
			return nil, errPerlBackref
		}
		return p.perlBack(n), nil
	}
	if n, ok := p.perl.names[name]; ok {
		return p.perlBack(n - p.first), nil
	}
	return nil, errPerlBackref
}

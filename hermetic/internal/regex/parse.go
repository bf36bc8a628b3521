package regex

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one expression: glibc's largest interval, and how deep it nests.
const (
	maxDup   = 0x7fff
	maxDepth = 500
)

// parser reads one expression.
type parser struct {
	src      string
	pos      int
	opts     Options
	d        dialect
	group    int // groups so far, those of expressions before included
	first    int // groups of expressions before
	open     []int
	done     map[int]bool // groups that are closed
	depth    int
	backrefs bool
	warnings []string
	perl     perlState
}

func (p *parser) parseAll() (*node, error) {
	p.done = map[int]bool{}
	switch p.opts.Syntax {
	case Fixed:
		return p.fixed(), nil
	case Perl:
		return p.parsePerl()
	}
	var ok bool
	if p.d, ok = dialectOf(p.opts.Syntax); !ok {
		return nil, errNoSyntax
	}
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.src) {
		return nil, errClose
	}
	return n, nil
}

func (p *parser) fixed() *node {
	var subs []*node
	for p.pos < len(p.src) {
		subs = append(subs, p.char(p.next()))
	}
	return concat(subs)
}

// next reads one character.
func (p *parser) next() rune {
	r, n := decode([]byte(p.src[p.pos:min(len(p.src), p.pos+utf8.UTFMax)]), p.opts.Bytes)
	p.pos += n
	return r
}

// char is one character, in both cases when asked for.
func (p *parser) char(r rune) *node {
	if p.opts.Fold && r < invalid && (r < utf8.RuneSelf || !p.opts.Bytes) {
		pairs := foldPairs([]rune{r, r})
		if p.opts.Bytes {
			pairs = ascii(pairs)
		}
		if len(pairs) > 2 {
			return &node{op: opSet, set: newSet(pairs)}
		}
	}
	return &node{op: opRune, r: r}
}

func ascii(pairs []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] < 256 {
			out = append(out, pairs[i], min(pairs[i+1], 255))
		}
	}
	return out
}

func (p *parser) looking(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

// operator reports whether the operator c is next, written as the dialect has
// it.
func (p *parser) operator(c string, escaped bool) bool {
	if escaped {
		c = `\` + c
	}
	return p.looking(c)
}

func (p *parser) take(c string, escaped bool) bool {
	if !p.operator(c, escaped) {
		return false
	}
	p.pos += len(c)
	if escaped {
		p.pos++
	}
	return true
}

func (p *parser) alternatives() (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, errTooBig
	}
	var alts []*node
	for {
		n, err := p.branch()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.take("|", p.d.escapedBar) {
			return alternate(alts), nil
		}
	}
}

// branch reads what stands between bars.
func (p *parser) branch() (*node, error) {
	var subs []*node
	start := true // nothing is before that an operator could be of
	caret := true // ^ is an anchor here
	for p.pos < len(p.src) && !p.operator("|", p.d.escapedBar) {
		if p.operator(")", p.d.escaped) && (len(p.open) > 0 || !p.d.looseClose) {
			break
		}
		n, err := p.piece(start, caret || p.d.anchors)
		if err != nil {
			return nil, err
		}
		if n == nil { // an operator that was skipped
			continue
		}
		anchor := n.op == opAssert
		start, caret = anchor, false
		if !anchor {
			if n, err = p.repeats(n); err != nil {
				return nil, err
			}
		}
		subs = append(subs, n)
	}
	return concat(subs), nil
}

// piece reads one thing that may be repeated; nil: an operator was skipped.
func (p *parser) piece(start, caret bool) (*node, error) {
	if start {
		if skipped, err := p.leadingOperator(); skipped || err != nil {
			return nil, err
		}
	}
	switch {
	case p.take("(", p.d.escaped):
		return p.groupNode()
	case p.looking("["):
		p.pos++
		return p.bracket()
	case p.looking("."):
		p.pos++
		return &node{op: opSet, set: p.dot(p.opts.DotLine)}, nil
	case p.looking("^") && caret:
		p.pos++
		return p.assert(lineStart), nil
	case p.looking("$") && p.dollar():
		p.pos++
		return p.assert(lineEnd), nil
	case p.looking(`\`):
		return p.escape()
	}
	return p.char(p.next()), nil
}

// assert is a place; in awk ^ and $ are those of the text.
func (p *parser) assert(a assertion) *node { return &node{op: opAssert, n: int(a)} }

// leadingOperator handles an operator with nothing before it.
func (p *parser) leadingOperator() (skipped bool, err error) {
	width := 0
	switch {
	case p.looking("*"):
		width = 1
	case p.operator("+", p.d.escapedPlus), p.operator("?", p.d.escapedPlus):
		width = 1
		if p.d.escapedPlus {
			width = 2
		}
	case !p.d.noIntervals && p.operator("{", p.d.escaped):
		return p.leadingInterval()
	default:
		return false, nil
	}
	what := p.src[p.pos+width-1 : p.pos+width]
	switch {
	case p.d.invalidOps:
		return false, errRepeat
	case p.d.skipOps:
		p.warn("%s at start of expression", what)
		p.pos += width
		return true, nil
	}
	p.pos += width - 1 // the character itself
	return false, nil
}

func (p *parser) leadingInterval() (skipped bool, err error) {
	at := p.pos
	p.take("{", p.d.escaped)
	_, _, ok, err := p.interval()
	if p.d.invalidDup || err != nil && !p.d.escaped {
		return false, errRepeat
	}
	if p.d.skipOps && ok {
		p.warn("%s at start of expression", "{...}")
		return true, nil
	}
	p.pos = at
	if p.d.escaped {
		p.pos++ // the brace itself
	}
	return false, nil
}

// dollar reports whether the $ that is next is an anchor.
func (p *parser) dollar() bool {
	rest := p.src[p.pos+1:]
	return p.d.anchors || rest == "" || strings.HasPrefix(rest, `\)`) && p.d.escaped || strings.HasPrefix(rest, `\|`) && p.d.escapedBar
}

func (p *parser) groupNode() (*node, error) {
	p.group++
	me := p.group
	p.open = append(p.open, me)
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")", p.d.escaped) {
		return nil, errParen
	}
	p.open = p.open[:len(p.open)-1]
	p.done[me] = true
	return &node{op: opGroup, n: me, subs: []*node{n}}, nil
}

// repeats reads the operators after n.
func (p *parser) repeats(n *node) (*node, error) {
	for p.pos < len(p.src) {
		lo, hi := 0, -1
		at := p.pos
		switch {
		case p.take("*", false):
		case p.take("+", p.d.escapedPlus):
			lo = 1
		case p.take("?", p.d.escapedPlus):
			hi = 1
		case !p.d.noIntervals && p.take("{", p.d.escaped):
			var ok bool
			var err error
			if lo, hi, ok, err = p.interval(); err != nil {
				return nil, err
			}
			if !ok {
				p.pos = at
				return n, nil
			}
			if p.d.invalidDup && p.operator("{", p.d.escaped) && p.d.escaped {
				return nil, errRepeat
			}
		default:
			return n, nil
		}
		n = repeat(n, lo, hi)
		if n.depth() > maxDepth {
			return nil, errTooBig
		}
	}
	return n, nil
}

// repeat is n from lo to hi times; what is nested without need is made one.
func repeat(n *node, lo, hi int) *node {
	if n.op == opRepeat && n.max < 0 && n.min <= 1 && hi != 0 && lo <= 1 && !n.lazy {
		if hi < 0 || hi == 1 || lo == 1 {
			n.min = min(n.min, lo)
			return n
		}
	}
	return &node{op: opRepeat, subs: []*node{n}, min: lo, max: hi}
}

// depth is how many repetitions n is in a row.
func (n *node) depth() int {
	d := 0
	for ; n.op == opRepeat; n = n.subs[0] {
		d++
	}
	return d
}

// interval reads what follows "{". Where it is none ok is false, in dialects
// that take it for text then.
func (p *parser) interval() (lo, hi int, ok bool, err error) {
	closing := "}"
	if p.d.escaped {
		closing = `\}`
	}
	text, _, found := strings.Cut(p.src[p.pos:], closing)
	if !found {
		if p.d.looseInterval {
			return 0, 0, false, nil
		}
		return 0, 0, false, errBrace
	}
	first, second, comma := strings.Cut(text, ",")
	lo, good := number(first)
	hi = lo
	if comma {
		var good2 bool
		hi, good2 = number(second)
		good = good && good2
		if second == "" {
			hi = -1
		}
	} else if first == "" {
		good = false
	}
	switch {
	case !good && p.d.looseInterval:
		return 0, 0, false, nil
	case !good, hi >= 0 && hi < lo:
		return 0, 0, false, errBadBrace
	case lo > maxDup, hi > maxDup:
		return 0, 0, false, errTooBig
	}
	p.pos += len(text) + len(closing)
	return lo, hi, true, nil
}

// number reads digits; empty is 0. What is larger than maxDup is just that.
func number(s string) (n int, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxDup+1)
	}
	return n, true
}

func (p *parser) warn(format string, args ...any) {
	if p.d.grep {
		p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
	}
}

package arith

import "math"

func (p *parser) enter() {
	if p.nested++; p.nested > maxNesting {
		p.fail("expression recursion level exceeded", p.lastAt)
	}
}

func (p *parser) comma() int64 {
	n := p.assign()
	for p.tok == "," {
		p.next()
		n = p.assign()
	}
	return n
}

type place struct {
	id, index string
	indexed   bool
}

// assign parses an assignment, or what is not one.
func (p *parser) assign() int64 {
	p.enter()
	defer func() { p.nested-- }()
	if p.tok == name {
		save := *p
		at := place{p.id, p.index, p.hasIdx}
		p.next()
		if op := p.tok; assigns(op) {
			p.next()
			var old int64
			if op != "=" {
				old = p.get(at)
			}
			n := p.assign()
			if op != "=" {
				n = p.apply(op[:len(op)-1], old, n, p.lastAt)
			}
			p.set(at, n)
			return n
		}
		nested := p.nested
		*p = save
		p.nested = nested
	}
	n := p.ternary()
	if assigns(p.tok) {
		p.fail("attempted assignment to non-variable", p.lastAt)
	}
	return n
}

func assigns(t token) bool {
	switch t {
	case "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=":
		return true
	}
	return false
}

func (p *parser) get(at place) int64 {
	if p.skip > 0 {
		return 0
	}
	s, err := p.vars.Get(at.id, at.index, at.indexed)
	p.must(err)
	n, err := eval(s, p.vars, p.depth+1)
	p.must(err)
	return n
}

func (p *parser) set(at place, n int64) {
	if p.skip == 0 {
		p.must(p.vars.Set(at.id, at.index, at.indexed, n))
	}
}

func (p *parser) ternary() int64 {
	cond := p.binary(0)
	if p.tok != "?" {
		return cond
	}
	p.next()
	if p.tok == ":" || p.tok == end {
		p.fail("expression expected", p.lastAt)
	}
	yes := p.unless(cond == 0, p.comma)
	if p.tok != ":" {
		p.fail("`:' expected for conditional expression", p.lastAt)
	}
	p.next()
	if p.tok == end {
		p.fail("expression expected", p.lastAt)
	}
	no := p.unless(cond != 0, p.assign)
	if cond != 0 {
		return yes
	}
	return no
}

// unless parses with f, and evaluates only if skip is false.
func (p *parser) unless(skip bool, f func() int64) int64 {
	if skip {
		p.skip++
		defer func() { p.skip-- }()
	}
	return f()
}

// level is how tightly an operator binds, from 1; 0 if it is not a binary
// operator.
func level(t token) int {
	switch t {
	case "||":
		return 1
	case "&&":
		return 2
	case "|":
		return 3
	case "^":
		return 4
	case "&":
		return 5
	case "==", "!=":
		return 6
	case "<", ">", "<=", ">=":
		return 7
	case "<<", ">>":
		return 8
	case "+", "-":
		return 9
	case "*", "/", "%":
		return 10
	case "**":
		return 11
	}
	return 0
}

func (p *parser) binary(above int) int64 {
	p.enter()
	defer func() { p.nested-- }()
	x := p.unary()
	for {
		op := p.tok
		l := level(op)
		if l == 0 || l <= above {
			return x
		}
		p.next()
		at := p.lastAt
		if op == "**" {
			l-- // groups from the right
		}
		var y int64
		switch op {
		case "||":
			y = p.unless(x != 0, func() int64 { return p.binary(l) })
		case "&&":
			y = p.unless(x == 0, func() int64 { return p.binary(l) })
		default:
			y = p.binary(l)
		}
		x = p.apply(op, x, y, at)
	}
}

func (p *parser) apply(op token, x, y int64, at int) int64 {
	switch op {
	case "||":
		return truth(x != 0 || y != 0)
	case "&&":
		return truth(x != 0 && y != 0)
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "&":
		return x & y
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<":
		return truth(x < y)
	case ">":
		return truth(x > y)
	case "<=":
		return truth(x <= y)
	case ">=":
		return truth(x >= y)
	case "<<":
		return x << (uint64(y) & 63)
	case ">>":
		return x >> (uint64(y) & 63)
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return p.power(x, y, at)
	}
	return p.divide(op, x, y, at)
}

func (p *parser) divide(op token, x, y int64, at int) int64 {
	switch {
	case y == 0 && p.skip > 0:
		return 0
	case y == 0:
		p.fail("division by 0", at)
	case x == math.MinInt64 && y == -1 && op == "%":
		return 0
	case x == math.MinInt64 && y == -1:
		return x
	case op == "%":
		return x % y
	}
	return x / y
}

func (p *parser) power(x, y int64, at int) int64 {
	if y < 0 {
		if p.skip > 0 {
			return 0
		}
		p.fail("exponent less than 0", at)
	}
	n := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			n *= x
		}
		x *= x
	}
	return n
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (p *parser) unary() int64 {
	p.enter()
	defer func() { p.nested-- }()
	switch op := p.tok; op {
	case "!", "~", "-", "+":
		p.next()
		x := p.unary()
		switch op {
		case "!":
			return truth(x == 0)
		case "~":
			return ^x
		case "-":
			return -x
		}
		return x
	case "++", "--":
		p.next()
		if p.tok != name {
			p.fail("identifier expected after pre-increment or pre-decrement", p.lastAt)
		}
		at := place{p.id, p.index, p.hasIdx}
		p.next()
		n := p.get(at) + step(op)
		p.set(at, n)
		return n
	}
	return p.primary()
}

func step(op token) int64 {
	if op == "--" {
		return -1
	}
	return 1
}

func (p *parser) primary() int64 {
	switch p.tok {
	case number:
		n := p.value
		p.next()
		return n
	case name:
		at := place{p.id, p.index, p.hasIdx}
		p.next()
		n := p.get(at)
		if op := p.tok; op == "++" || op == "--" {
			p.next()
			p.set(at, n+step(op))
		}
		return n
	case "(":
		p.next()
		n := p.comma()
		if p.tok != ")" {
			p.fail("missing `)'", p.lastAt)
		}
		p.next()
		return n
	}
	at := p.lastAt
	p.fail("syntax error: operand expected", at)
	return 0
}

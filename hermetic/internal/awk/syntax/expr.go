package syntax

import (
	"strings"

	"egressd/hermetic/internal/awk/value"
)

func (p *parser) expr() Expr {
	p.enter()
	defer p.leave()
	return p.ternary()
}

// IsTarget reports whether a value can be assigned to e.
func IsTarget(e Expr) bool {
	switch e.(type) {
	case *NameExpr, *IndexExpr, *FieldExpr:
		return true
	}
	return false
}

// ternary reads a conditional or an assignment; both are right-associative.
func (p *parser) ternary() Expr {
	e := p.or()
	switch {
	case p.isOp("?"):
		p.next()
		p.newlines()
		yes := p.nested()
		p.newlines()
		p.want(":")
		p.newlines()
		return &CondExpr{e, yes, p.nested()}
	case p.isOp("=", "+=", "-=", "*=", "/=", "%=", "^="):
		return p.assign(e)
	}
	return e
}

func (p *parser) nested() Expr {
	p.enter()
	defer p.leave()
	return p.ternary()
}

// assign reads an assignment to e; where e is "a && b", to b.
func (p *parser) assign(e Expr) Expr {
	if !IsTarget(e) {
		switch b := e.(type) {
		case *BinExpr:
			b.R = p.assign(b.R)
			return b
		case *UnaryExpr:
			b.E = p.assign(b.E)
			return b
		case *MatchExpr:
			b.Re = p.assign(b.Re)
			return b
		}
		p.fail("syntax error")
	}
	op := strings.TrimSuffix(p.tok.text, "=")
	p.next()
	p.newlines()
	return &AssignExpr{op, e, p.nested()}
}

func (p *parser) or() Expr {
	e := p.and()
	for p.isOp("||") {
		p.next()
		p.newlines()
		e = &BinExpr{"||", e, p.and()}
	}
	return e
}

func (p *parser) and() Expr {
	e := p.in()
	for p.isOp("&&") {
		p.next()
		p.newlines()
		e = &BinExpr{"&&", e, p.in()}
	}
	return e
}

func (p *parser) in() Expr {
	e := p.match()
	for p.isWord("in") && !p.noIn {
		p.next()
		if p.tok.kind != tName {
			p.fail("syntax error")
		}
		subs := []Expr{e}
		if g, ok := e.(*GroupExpr); ok {
			subs = g.List
		}
		e = &InExpr{subs, p.variable()}
	}
	return e
}

func (p *parser) match() Expr {
	e := p.comparison()
	for p.isOp("~", "!~") {
		negate := p.tok.text == "!~"
		p.next()
		e = &MatchExpr{e, p.comparison(), negate}
	}
	return e
}

func (p *parser) comparison() Expr {
	e := p.pipes(p.concat())
	for p.isOp("<", "<=", "==", "!=", ">=") || p.isOp(">") && !p.noGt {
		op := p.tok.text
		p.next()
		e = p.pipes(&BinExpr{op, e, p.concat()})
	}
	return e
}

// pipes reads what "| getline" may follow.
func (p *parser) pipes(e Expr) Expr {
	for p.isOp("|") {
		save, tok := p.lex, p.tok
		p.next()
		if !p.isWord("getline") {
			p.lex, p.tok = save, tok
			return e
		}
		p.next()
		e = &GetlineExpr{From: "|", Source: e, Target: p.optionalTarget()}
	}
	return e
}

// optionalTarget reads the variable of a getline, if one is there.
func (p *parser) optionalTarget() Expr {
	if p.tok.kind == tName || p.isOp("$") {
		return p.primary()
	}
	return nil
}

// concat reads values side by side.
func (p *parser) concat() Expr {
	e := p.additive()
	for p.startsValue() {
		e = &BinExpr{" ", e, p.additive()}
	}
	return e
}

func (p *parser) startsValue() bool {
	switch p.tok.kind {
	case tNumber, tString, tName, tFuncName, tBuiltin, tRegex:
		return true
	case tOp:
		return p.isOp("(", "$", "!", "-", "+", "++", "--")
	}
	return false
}

func (p *parser) additive() Expr {
	e := p.multiplicative()
	for p.isOp("+", "-") {
		op := p.tok.text
		p.next()
		e = &BinExpr{op, e, p.multiplicative()}
	}
	return e
}

func (p *parser) multiplicative() Expr {
	e := p.unary()
	for p.isOp("*", "/", "%") {
		op := p.tok.text
		p.next()
		e = &BinExpr{op, e, p.unary()}
	}
	return e
}

func (p *parser) unary() Expr {
	p.enter()
	defer p.leave()
	if p.isOp("!", "-", "+") {
		op := p.tok.text
		p.next()
		return &UnaryExpr{op, p.unary()}
	}
	return p.power()
}

func (p *parser) power() Expr {
	e := p.postfix()
	if p.isOp("^") {
		p.next()
		if p.isOp("-", "+", "!") {
			op := p.tok.text
			p.next()
			return &BinExpr{"^", e, &UnaryExpr{op, p.powerRight()}}
		}
		return &BinExpr{"^", e, p.powerRight()}
	}
	return e
}

func (p *parser) powerRight() Expr {
	p.enter()
	defer p.leave()
	return p.power()
}

func (p *parser) postfix() Expr {
	e := p.primary()
	if IsTarget(e) && p.isOp("++", "--") {
		by := 1.0
		if p.tok.text == "--" {
			by = -1
		}
		p.next()
		return &IncExpr{e, by, false}
	}
	return e
}

func (p *parser) primary() Expr {
	t := p.tok
	switch t.kind {
	case tNumber:
		p.next()
		return &NumExpr{value.Num(t.num)}
	case tString:
		p.next()
		return &StrExpr{value.Str(t.text)}
	case tRegex:
		p.next()
		return &RegexExpr{Src: t.text}
	case tName:
		return p.variable()
	case tFuncName:
		return p.call()
	case tBuiltin:
		return p.builtin()
	case tKeyword:
		if t.text == "getline" {
			return p.getline()
		}
	case tOp:
		return p.opPrimary()
	}
	p.fail("syntax error")
	return nil
}

func (p *parser) opPrimary() Expr {
	switch {
	case p.isOp("$"):
		p.next()
		p.enter()
		defer p.leave()
		if p.isOp("++", "--") {
			return &FieldExpr{p.primary()}
		}
		if p.isOp("-", "+", "!") {
			op := p.tok.text
			p.next()
			return &FieldExpr{&UnaryExpr{op, p.primary()}}
		}
		return &FieldExpr{p.primary()}
	case p.isOp("++", "--"):
		by := 1.0
		if p.tok.text == "--" {
			by = -1
		}
		p.next()
		e := p.primary()
		if !IsTarget(e) {
			p.fail("syntax error")
		}
		return &IncExpr{e, by, true}
	case p.isOp("("):
		return p.group()
	case p.isOp("@"):
		p.enter()
		defer p.leave()
		return p.indirect()
	case p.isOp("!", "-", "+"):
		return p.unary()
	}
	p.fail("syntax error")
	return nil
}

func (p *parser) group() Expr {
	p.next()
	noIn, noGt := p.noIn, p.noGt
	p.noIn, p.noGt = false, false
	list := p.list(")")
	p.noIn, p.noGt = noIn, noGt
	p.want(")")
	if len(list) == 0 {
		p.fail("syntax error")
	}
	if len(list) == 1 {
		if IsTarget(list[0]) {
			return &GroupExpr{list}
		}
		return &GroupExpr{list}
	}
	return &GroupExpr{list}
}

func (p *parser) variable() Expr {
	var e Expr = p.name(p.tok.text)
	p.next()
	for depth := 0; p.isOp("["); depth++ {
		if depth > maxIndexes {
			p.fail("too many subscripts")
		}
		p.next()
		noIn, noGt := p.noIn, p.noGt
		p.noIn, p.noGt = false, false
		subs := p.list("]")
		p.noIn, p.noGt = noIn, noGt
		p.want("]")
		if len(subs) == 0 {
			p.fail("syntax error")
		}
		e = &IndexExpr{e, subs}
	}
	return e
}

// maxIndexes bounds how deep arrays lie in each other.
const maxIndexes = 100

// indirect reads what follows the "@" of a call by name.
func (p *parser) indirect() Expr {
	line := p.tok.line
	p.next()
	if p.tok.kind != tName && p.tok.kind != tFuncName {
		p.fail("syntax error")
	}
	e := &IndirectExpr{Name: p.name(p.tok.text), Line: line}
	p.next()
	e.Args = p.args()
	return e
}

func (p *parser) args() []Expr {
	p.want("(")
	noIn, noGt := p.noIn, p.noGt
	p.noIn, p.noGt = false, false
	list := p.list(")")
	p.noIn, p.noGt = noIn, noGt
	p.want(")")
	return list
}

func (p *parser) call() Expr {
	e := &CallExpr{F: p.funcNamed(p.tok.text), Line: p.tok.line}
	p.next()
	e.Args = p.args()
	return e
}

func (p *parser) builtin() Expr {
	e := &BuiltinExpr{Name: p.tok.text, Line: p.tok.line}
	p.next()
	if e.Name == "length" && !p.isOp("(") {
		return e
	}
	e.Args = p.args()
	if n := Builtins[e.Name]; len(e.Args) < n[0] || len(e.Args) > n[1] {
		p.fail("%d is invalid as number of arguments for %s", len(e.Args), e.Name)
	}
	return e
}

func (p *parser) getline() Expr {
	p.next()
	e := &GetlineExpr{Target: p.optionalTarget()}
	if p.isOp("<") {
		p.next()
		e.From, e.Source = "<", p.postfixNoIn()
	}
	return e
}

// postfixNoIn reads the file of a getline: no concatenation without parens.
func (p *parser) postfixNoIn() Expr { return p.postfix() }

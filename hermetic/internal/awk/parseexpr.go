package awk

import "strings"

func (p *parser) expr() expr {
	p.enter()
	defer p.leave()
	return p.ternary()
}

func isTarget(e expr) bool {
	switch e.(type) {
	case *nameExpr, *indexExpr, *fieldExpr:
		return true
	}
	return false
}

// ternary reads a conditional or an assignment; both are right-associative.
func (p *parser) ternary() expr {
	e := p.or()
	switch {
	case p.isOp("?"):
		p.next()
		p.newlines()
		yes := p.nested()
		p.newlines()
		p.want(":")
		p.newlines()
		return &condExpr{e, yes, p.nested()}
	case p.isOp("=", "+=", "-=", "*=", "/=", "%=", "^="):
		return p.assign(e)
	}
	return e
}

func (p *parser) nested() expr {
	p.enter()
	defer p.leave()
	return p.ternary()
}

// assign reads an assignment to e; where e is "a && b", to b.
func (p *parser) assign(e expr) expr {
	if !isTarget(e) {
		switch b := e.(type) {
		case *binExpr:
			b.r = p.assign(b.r)
			return b
		case *unaryExpr:
			b.e = p.assign(b.e)
			return b
		case *matchExpr:
			b.re = p.assign(b.re)
			return b
		}
		p.fail("syntax error")
	}
	op := strings.TrimSuffix(p.tok.text, "=")
	p.next()
	p.newlines()
	return &assignExpr{op, e, p.nested()}
}

func (p *parser) or() expr {
	e := p.and()
	for p.isOp("||") {
		p.next()
		p.newlines()
		e = &binExpr{"||", e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.in()
	for p.isOp("&&") {
		p.next()
		p.newlines()
		e = &binExpr{"&&", e, p.in()}
	}
	return e
}

func (p *parser) in() expr {
	e := p.match()
	for p.isWord("in") && !p.noIn {
		p.next()
		if p.tok.kind != tName {
			p.fail("syntax error")
		}
		subs := []expr{e}
		if g, ok := e.(*groupExpr); ok {
			subs = g.list
		}
		e = &inExpr{subs, p.variable()}
	}
	return e
}

func (p *parser) match() expr {
	e := p.comparison()
	for p.isOp("~", "!~") {
		negate := p.tok.text == "!~"
		p.next()
		e = &matchExpr{e, p.comparison(), negate}
	}
	return e
}

func (p *parser) comparison() expr {
	e := p.pipes(p.concat())
	for p.isOp("<", "<=", "==", "!=", ">=") || p.isOp(">") && !p.noGt {
		op := p.tok.text
		p.next()
		e = p.pipes(&binExpr{op, e, p.concat()})
	}
	return e
}

// pipes reads what "| getline" may follow.
func (p *parser) pipes(e expr) expr {
	for p.isOp("|") {
		save, tok := p.lex, p.tok
		p.next()
		if !p.isWord("getline") {
			p.lex, p.tok = save, tok
			return e
		}
		p.next()
		e = &getlineExpr{from: "|", source: e, target: p.optionalTarget()}
	}
	return e
}

// optionalTarget reads the variable of a getline, if one is there.
func (p *parser) optionalTarget() expr {
	if p.tok.kind == tName || p.isOp("$") {
		return p.primary()
	}
	return nil
}

// concat reads values side by side.
func (p *parser) concat() expr {
	e := p.additive()
	for p.startsValue() {
		e = &binExpr{" ", e, p.additive()}
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

func (p *parser) additive() expr {
	e := p.multiplicative()
	for p.isOp("+", "-") {
		op := p.tok.text
		p.next()
		e = &binExpr{op, e, p.multiplicative()}
	}
	return e
}

func (p *parser) multiplicative() expr {
	e := p.unary()
	for p.isOp("*", "/", "%") {
		op := p.tok.text
		p.next()
		e = &binExpr{op, e, p.unary()}
	}
	return e
}

func (p *parser) unary() expr {
	p.enter()
	defer p.leave()
	if p.isOp("!", "-", "+") {
		op := p.tok.text
		p.next()
		return &unaryExpr{op, p.unary()}
	}
	return p.power()
}

func (p *parser) power() expr {
	e := p.postfix()
	if p.isOp("^") {
		p.next()
		if p.isOp("-", "+", "!") {
			op := p.tok.text
			p.next()
			return &binExpr{"^", e, &unaryExpr{op, p.powerRight()}}
		}
		return &binExpr{"^", e, p.powerRight()}
	}
	return e
}

func (p *parser) powerRight() expr {
	p.enter()
	defer p.leave()
	return p.power()
}

func (p *parser) postfix() expr {
	e := p.primary()
	if isTarget(e) && p.isOp("++", "--") {
		by := 1.0
		if p.tok.text == "--" {
			by = -1
		}
		p.next()
		return &incExpr{e, by, false}
	}
	return e
}

func (p *parser) primary() expr {
	t := p.tok
	switch t.kind {
	case tNumber:
		p.next()
		return &numExpr{num(t.num)}
	case tString:
		p.next()
		return &strExpr{str(t.text)}
	case tRegex:
		p.next()
		return &regexExpr{src: t.text}
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

func (p *parser) opPrimary() expr {
	switch {
	case p.isOp("$"):
		p.next()
		p.enter()
		defer p.leave()
		if p.isOp("++", "--") {
			return &fieldExpr{p.primary()}
		}
		if p.isOp("-", "+", "!") {
			op := p.tok.text
			p.next()
			return &fieldExpr{&unaryExpr{op, p.primary()}}
		}
		return &fieldExpr{p.primary()}
	case p.isOp("++", "--"):
		by := 1.0
		if p.tok.text == "--" {
			by = -1
		}
		p.next()
		e := p.primary()
		if !isTarget(e) {
			p.fail("syntax error")
		}
		return &incExpr{e, by, true}
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

func (p *parser) group() expr {
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
		if isTarget(list[0]) {
			return &groupExpr{list}
		}
		return &groupExpr{list}
	}
	return &groupExpr{list}
}

func (p *parser) variable() expr {
	var e expr = p.name(p.tok.text)
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
		e = &indexExpr{e, subs}
	}
	return e
}

// maxIndexes bounds how deep arrays lie in each other.
const maxIndexes = 100

// indirect reads what follows the "@" of a call by name.
func (p *parser) indirect() expr {
	line := p.tok.line
	p.next()
	if p.tok.kind != tName && p.tok.kind != tFuncName {
		p.fail("syntax error")
	}
	e := &indirectExpr{name: p.name(p.tok.text), line: line}
	p.next()
	e.args = p.args()
	return e
}

func (p *parser) args() []expr {
	p.want("(")
	noIn, noGt := p.noIn, p.noGt
	p.noIn, p.noGt = false, false
	list := p.list(")")
	p.noIn, p.noGt = noIn, noGt
	p.want(")")
	return list
}

func (p *parser) call() expr {
	e := &callExpr{f: p.funcNamed(p.tok.text), line: p.tok.line}
	p.next()
	e.args = p.args()
	return e
}

func (p *parser) builtin() expr {
	e := &builtinExpr{name: p.tok.text, line: p.tok.line}
	p.next()
	if e.name == "length" && !p.isOp("(") {
		return e
	}
	e.args = p.args()
	if n := builtins[e.name]; len(e.args) < n[0] || len(e.args) > n[1] {
		p.fail("%d is invalid as number of arguments for %s", len(e.args), e.name)
	}
	return e
}

func (p *parser) getline() expr {
	p.next()
	e := &getlineExpr{target: p.optionalTarget()}
	if p.isOp("<") {
		p.next()
		e.from, e.source = "<", p.postfixNoIn()
	}
	return e
}

// postfixNoIn reads the file of a getline: no concatenation without parens.
func (p *parser) postfixNoIn() expr { return p.postfix() }

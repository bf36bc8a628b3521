package awk

func (p *parser) block() *stmt {
	s := &stmt{kind: sBlock, line: p.tok.line}
	p.want("{")
	for p.terminators(); !p.isOp("}"); p.terminators() {
		if p.tok.kind == tEOF {
			p.fail("syntax error: unexpected end of program")
		}
		s.list = append(s.list, p.stmt())
	}
	p.next()
	return s
}

// simpleBody is what a condition is for: one statement, or none.
func (p *parser) simpleBody() *stmt {
	p.newlines()
	if p.isOp(";") {
		p.next()
		return &stmt{kind: sBlock}
	}
	return p.stmt()
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("the program nests too deeply")
	}
}

func (p *parser) leave() { p.depth-- }

// endSimple reads what ends a simple statement.
func (p *parser) endSimple() {
	switch {
	case p.tok.kind == tNewline || p.isOp(";"):
		p.next()
	case p.isOp("}") || p.tok.kind == tEOF:
	default:
		p.fail("syntax error")
	}
}

func (p *parser) stmt() *stmt {
	p.enter()
	defer p.leave()
	line := p.tok.line
	var s *stmt
	switch {
	case p.isOp("{"):
		s = p.block()
		return s
	case p.tok.kind == tKeyword:
		s = p.keywordStmt()
	default:
		s = p.simple()
		p.endSimple()
	}
	s.line = line
	return s
}

func (p *parser) keywordStmt() *stmt {
	word := p.tok.text
	switch word {
	case "if":
		return p.ifStmt()
	case "while":
		p.next()
		p.want("(")
		s := &stmt{kind: sWhile, cond: p.expr()}
		p.want(")")
		if p.isOp(";") {
			p.next()
			s.body = &stmt{kind: sBlock}
			return s
		}
		s.body = p.loopBody()
		return s
	case "do":
		return p.doStmt()
	case "for":
		return p.forStmt()
	case "switch":
		return p.switchStmt()
	}
	s := p.simple()
	p.endSimple()
	return s
}

func (p *parser) loopBody() *stmt {
	p.loops++
	defer func() { p.loops-- }()
	return p.simpleBody()
}

func (p *parser) ifStmt() *stmt {
	p.next()
	p.want("(")
	s := &stmt{kind: sIf, cond: p.expr()}
	p.want(")")
	s.body = p.simpleBody()
	// an "else" may follow newlines and a semicolon; put back what is none
	save, tok := p.lex, p.tok
	p.terminators()
	if p.isWord("else") {
		p.next()
		s.alt = p.simpleBody()
		return s
	}
	p.lex, p.tok = save, tok
	return s
}

func (p *parser) doStmt() *stmt {
	p.next()
	s := &stmt{kind: sDo, body: p.loopBody()}
	p.terminators()
	if !p.isWord("while") {
		p.fail("syntax error")
	}
	p.next()
	p.want("(")
	s.cond = p.expr()
	p.want(")")
	p.endSimple()
	return s
}

func (p *parser) forStmt() *stmt {
	p.next()
	p.want("(")
	if p.tok.kind == tName {
		save, tok := p.lex, p.tok
		name := p.tok.text
		p.next()
		if p.isWord("in") {
			p.next()
			if p.tok.kind == tName {
				array := p.variable()
				if p.isOp(")") {
					p.next()
					s := &stmt{kind: sForIn, array: array, args: []expr{p.name(name)}}
					s.body = p.loopBody()
					return s
				}
			}
		}
		p.lex, p.tok = save, tok
	}
	s := &stmt{kind: sFor}
	if !p.isOp(";") {
		s.init = p.simple()
	}
	p.want(";")
	p.newlines()
	if !p.isOp(";") {
		s.cond = p.expr()
	}
	p.want(";")
	p.newlines()
	if !p.isOp(")") {
		s.step = p.simple()
	}
	p.want(")")
	if p.isOp(";") {
		p.next()
		s.body = &stmt{kind: sBlock}
		return s
	}
	s.body = p.loopBody()
	return s
}

func (p *parser) switchStmt() *stmt {
	p.next()
	p.want("(")
	s := &stmt{kind: sSwitch, cond: p.expr()}
	p.want(")")
	p.newlines()
	p.want("{")
	p.switches++
	for p.terminators(); !p.isOp("}"); p.terminators() {
		var c switchCase
		switch {
		case p.isWord("case"):
			p.next()
			c.value = p.unary()
		case p.isWord("default"):
			p.next()
		default:
			p.fail("syntax error")
		}
		p.want(":")
		for p.terminators(); !p.isWord("case", "default") && !p.isOp("}"); p.terminators() {
			c.body = append(c.body, p.stmt())
		}
		s.cases = append(s.cases, c)
	}
	p.switches--
	p.next()
	return s
}

// simple reads a statement that a for may hold, too.
func (p *parser) simple() *stmt {
	if p.tok.kind != tKeyword {
		return &stmt{kind: sExpr, cond: p.expr()}
	}
	word := p.tok.text
	switch word {
	case "print", "printf":
		return p.print()
	case "getline":
		return &stmt{kind: sExpr, cond: p.expr()}
	case "delete":
		return p.deleteStmt()
	}
	s := &stmt{}
	switch word {
	case "break":
		s.kind = sBreak
	case "continue":
		s.kind = sContinue
	case "next":
		s.kind = sNext
	case "nextfile":
		s.kind = sNextFile
	case "exit":
		s.kind = sExit
	case "return":
		s.kind = sReturn
		if !p.inFunc {
			p.fail("`return' used outside function context")
		}
	default:
		p.fail("syntax error")
	}
	switch {
	case s.kind == sBreak && p.loops+p.switches == 0:
		p.fail("`break' is not allowed outside a loop or switch")
	case s.kind == sContinue && p.loops == 0:
		p.fail("`continue' is not allowed outside a loop")
	}
	p.next()
	if (s.kind == sExit || s.kind == sReturn) && p.tok.kind != tNewline && p.tok.kind != tEOF && !p.isOp(";", "}") {
		s.cond = p.expr()
	}
	return s
}

func (p *parser) deleteStmt() *stmt {
	p.next()
	paren := p.isOp("(")
	if paren {
		p.next()
	}
	if p.tok.kind != tName {
		p.fail("syntax error")
	}
	s := &stmt{kind: sDelete, array: p.variable()}
	if e, ok := s.array.(*indexExpr); ok {
		s.array, s.args = e.array, e.subs
	}
	if paren {
		p.want(")")
	}
	return s
}

// print reads print or printf and where to.
func (p *parser) print() *stmt {
	s := &stmt{kind: sPrint, line: p.tok.line}
	if p.tok.text == "printf" {
		s.kind = sPrintf
	}
	p.next()
	was := p.noGt
	p.noGt = true
	if p.tok.kind != tNewline && p.tok.kind != tEOF && !p.isOp(";", "}", ">", ">>", "|", "|&") {
		s.args = p.list("")
		if g, ok := s.args[0].(*groupExpr); ok && len(s.args) == 1 {
			s.args = g.list
		}
	}
	if p.isOp(">", ">>", "|", "|&") {
		s.to = p.tok.text
		if s.to == "|&" {
			p.fail("|& is not supported here")
		}
		p.next()
		s.dest = p.concat()
	}
	p.noGt = was
	if s.kind == sPrintf && len(s.args) == 0 {
		p.fail("syntax error")
	}
	return s
}

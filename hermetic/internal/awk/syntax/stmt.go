package syntax

func (p *parser) block() *Stmt {
	s := &Stmt{Kind: SBlock, Line: p.tok.line}
	p.want("{")
	for p.terminators(); !p.isOp("}"); p.terminators() {
		if p.tok.kind == tEOF {
			p.fail("syntax error: unexpected end of program")
		}
		s.List = append(s.List, p.stmt())
	}
	p.next()
	return s
}

// simpleBody is what a condition is for: one statement, or none.
func (p *parser) simpleBody() *Stmt {
	p.newlines()
	if p.isOp(";") {
		p.next()
		return &Stmt{Kind: SBlock}
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

func (p *parser) stmt() *Stmt {
	p.enter()
	defer p.leave()
	line := p.tok.line
	var s *Stmt
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
	s.Line = line
	return s
}

func (p *parser) keywordStmt() *Stmt {
	word := p.tok.text
	switch word {
	case "if":
		return p.ifStmt()
	case "while":
		p.next()
		p.want("(")
		s := &Stmt{Kind: SWhile, Cond: p.expr()}
		p.want(")")
		if p.isOp(";") {
			p.next()
			s.Body = &Stmt{Kind: SBlock}
			return s
		}
		s.Body = p.loopBody()
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

func (p *parser) loopBody() *Stmt {
	p.loops++
	defer func() { p.loops-- }()
	return p.simpleBody()
}

func (p *parser) ifStmt() *Stmt {
	p.next()
	p.want("(")
	s := &Stmt{Kind: SIf, Cond: p.expr()}
	p.want(")")
	s.Body = p.simpleBody()
	// an "else" may follow newlines and a semicolon; put back what is none
	save, tok := p.lex, p.tok
	p.terminators()
	if p.isWord("else") {
		p.next()
		s.Alt = p.simpleBody()
		return s
	}
	p.lex, p.tok = save, tok
	return s
}

func (p *parser) doStmt() *Stmt {
	p.next()
	s := &Stmt{Kind: SDo, Body: p.loopBody()}
	p.terminators()
	if !p.isWord("while") {
		p.fail("syntax error")
	}
	p.next()
	p.want("(")
	s.Cond = p.expr()
	p.want(")")
	p.endSimple()
	return s
}

func (p *parser) forStmt() *Stmt {
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
					s := &Stmt{Kind: SForIn, Array: array, Args: []Expr{p.name(name)}}
					s.Body = p.loopBody()
					return s
				}
			}
		}
		p.lex, p.tok = save, tok
	}
	s := &Stmt{Kind: SFor}
	if !p.isOp(";") {
		s.Init = p.simple()
	}
	p.want(";")
	p.newlines()
	if !p.isOp(";") {
		s.Cond = p.expr()
	}
	p.want(";")
	p.newlines()
	if !p.isOp(")") {
		s.Step = p.simple()
	}
	p.want(")")
	if p.isOp(";") {
		p.next()
		s.Body = &Stmt{Kind: SBlock}
		return s
	}
	s.Body = p.loopBody()
	return s
}

func (p *parser) switchStmt() *Stmt {
	p.next()
	p.want("(")
	s := &Stmt{Kind: SSwitch, Cond: p.expr()}
	p.want(")")
	p.newlines()
	p.want("{")
	p.switches++
	for p.terminators(); !p.isOp("}"); p.terminators() {
		var c switchCase
		switch {
		case p.isWord("case"):
			p.next()
			c.Value = p.unary()
		case p.isWord("default"):
			p.next()
		default:
			p.fail("syntax error")
		}
		p.want(":")
		for p.terminators(); !p.isWord("case", "default") && !p.isOp("}"); p.terminators() {
			c.Body = append(c.Body, p.stmt())
		}
		s.Cases = append(s.Cases, c)
	}
	p.switches--
	p.next()
	return s
}

// simple reads a statement that a for may hold, too.
func (p *parser) simple() *Stmt {
	if p.tok.kind != tKeyword {
		return &Stmt{Kind: SExpr, Cond: p.expr()}
	}
	word := p.tok.text
	switch word {
	case "print", "printf":
		return p.print()
	case "getline":
		return &Stmt{Kind: SExpr, Cond: p.expr()}
	case "delete":
		return p.deleteStmt()
	}
	s := &Stmt{}
	switch word {
	case "break":
		s.Kind = SBreak
	case "continue":
		s.Kind = SContinue
	case "next":
		s.Kind = SNext
	case "nextfile":
		s.Kind = SNextFile
	case "exit":
		s.Kind = SExit
	case "return":
		s.Kind = SReturn
		if !p.inFunc {
			p.fail("`return' used outside function context")
		}
	default:
		p.fail("syntax error")
	}
	switch {
	case s.Kind == SBreak && p.loops+p.switches == 0:
		p.fail("`break' is not allowed outside a loop or switch")
	case s.Kind == SContinue && p.loops == 0:
		p.fail("`continue' is not allowed outside a loop")
	}
	p.next()
	if (s.Kind == SExit || s.Kind == SReturn) && p.tok.kind != tNewline && p.tok.kind != tEOF && !p.isOp(";", "}") {
		s.Cond = p.expr()
	}
	return s
}

func (p *parser) deleteStmt() *Stmt {
	p.next()
	paren := p.isOp("(")
	if paren {
		p.next()
	}
	if p.tok.kind != tName {
		p.fail("syntax error")
	}
	s := &Stmt{Kind: SDelete, Array: p.variable()}
	if e, ok := s.Array.(*IndexExpr); ok {
		s.Array, s.Args = e.Array, e.Subs
	}
	if paren {
		p.want(")")
	}
	return s
}

// print reads print or printf and where to.
func (p *parser) print() *Stmt {
	s := &Stmt{Kind: SPrint, Line: p.tok.line}
	if p.tok.text == "printf" {
		s.Kind = SPrintf
	}
	p.next()
	was := p.noGt
	p.noGt = true
	if p.tok.kind != tNewline && p.tok.kind != tEOF && !p.isOp(";", "}", ">", ">>", "|", "|&") {
		s.Args = p.list("")
		if g, ok := s.Args[0].(*GroupExpr); ok && len(s.Args) == 1 {
			s.Args = g.List
		}
	}
	if p.isOp(">", ">>", "|", "|&") {
		s.To = p.tok.text
		if s.To == "|&" {
			p.fail("|& is not supported here")
		}
		p.next()
		s.Dest = p.concat()
	}
	p.noGt = was
	if s.Kind == SPrintf && len(s.Args) == 0 {
		p.fail("syntax error")
	}
	return s
}

package awk

import (
	"fmt"
)

// maxDepth is how deep a program may nest.
const maxDepth = 400

type parser struct {
	lex      lexer
	tok      token
	prog     *program
	params   map[string]int // of the function being read
	depth    int
	noIn     bool
	noGt     bool
	inFunc   bool
	loops    int
	switches int
}

// parse reads a program.
func parse(src string) (prog *program, err error) {
	p := &parser{lex: lexer{src: src, line: 1}}
	p.lex.last.kind = tNewline
	p.prog = &program{funcs: map[string]*function{}, globals: map[string]int{}}
	defer func() {
		if r := recover(); r != nil {
			switch e := r.(type) {
			case *syntaxError:
				err = e
			case *undefinedError:
				err = e
			default:
				panic(r)
			}
		}
	}()
	p.next()
	p.items()
	for _, f := range p.prog.funcs {
		if !f.defined {
			panic(&undefinedError{f.name})
		}
	}
	return p.prog, nil
}

// undefinedError is a function that is called and not there.
type undefinedError struct{ name string }

func (e *undefinedError) Error() string { return "fatal: function `" + e.name + "' not defined" }

// fail ends the parse: every mistake does, and parse recovers it.
func (p *parser) fail(format string, args ...any) {
	panic(&syntaxError{p.tok.line, fmt.Sprintf(format, args...)})
}

func (p *parser) next() {
	t, err := p.lex.next()
	if err != nil {
		panic(err)
	}
	p.tok = t
}

func (p *parser) isOp(ops ...string) bool {
	if p.tok.kind != tOp {
		return false
	}
	for _, op := range ops {
		if p.tok.text == op {
			return true
		}
	}
	return false
}

func (p *parser) isWord(words ...string) bool {
	if p.tok.kind != tKeyword {
		return false
	}
	for _, w := range words {
		if p.tok.text == w {
			return true
		}
	}
	return false
}

func (p *parser) want(op string) {
	if !p.isOp(op) {
		p.fail("syntax error")
	}
	p.next()
}

func (p *parser) newlines() {
	for p.tok.kind == tNewline {
		p.next()
	}
}

func (p *parser) terminators() {
	for p.tok.kind == tNewline || p.isOp(";") {
		p.next()
	}
}

func (p *parser) items() {
	for p.terminators(); p.tok.kind != tEOF; p.terminators() {
		switch {
		case p.isWord("BEGIN", "END", "BEGINFILE", "ENDFILE"):
			p.special()
		case p.isWord("function"):
			p.function()
		default:
			p.rule()
		}
	}
}

func (p *parser) special() {
	list := map[string]*[]*stmt{
		"BEGIN": &p.prog.begin, "END": &p.prog.end, "BEGINFILE": &p.prog.beginFile, "ENDFILE": &p.prog.endFile,
	}[p.tok.text]
	p.next()
	if !p.isOp("{") {
		p.fail("syntax error")
	}
	*list = append(*list, p.block())
}

func (p *parser) rule() {
	r := &rule{line: p.tok.line}
	if !p.isOp("{") {
		r.from = p.expr()
		if p.isOp(",") {
			p.next()
			p.newlines()
			r.to = p.expr()
		}
	}
	if p.isOp("{") {
		r.body = p.block()
	}
	p.prog.rules = append(p.prog.rules, r)
}

func (p *parser) function() {
	p.next()
	if p.tok.kind != tName && p.tok.kind != tFuncName {
		p.fail("syntax error")
	}
	f := p.funcNamed(p.tok.text)
	if f.defined {
		p.fail("function name `%s' previously defined", f.name)
	}
	f.defined = true
	p.next()
	p.want("(")
	f.params = map[string]int{}
	for p.newlines(); !p.isOp(")"); {
		if p.tok.kind != tName {
			p.fail("syntax error")
		}
		f.params[p.tok.text] = len(f.params)
		p.next()
		p.newlines()
		if p.isOp(",") {
			p.next()
			p.newlines()
		}
	}
	f.count = len(f.params)
	p.next()
	p.newlines()
	p.params, p.inFunc = f.params, true
	f.body = p.block()
	p.params, p.inFunc = nil, false
}

func (p *parser) funcNamed(name string) *function {
	f := p.prog.funcs[name]
	if f == nil {
		f = &function{name: name, line: p.tok.line}
		p.prog.funcs[name] = f
	}
	return f
}

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
				array := p.tok.text
				p.next()
				if p.isOp(")") {
					p.next()
					s := &stmt{kind: sForIn, name: p.name(array), args: []expr{p.name(name)}}
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
	s := &stmt{kind: sDelete, name: p.name(p.tok.text)}
	p.next()
	if p.isOp("[") {
		p.next()
		s.args = p.list("]")
		p.want("]")
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

// list reads expressions with commas between.
func (p *parser) list(end string) []expr {
	var list []expr
	for p.newlines(); end == "" || !p.isOp(end); {
		list = append(list, p.expr())
		if !p.isOp(",") {
			if end != "" {
				p.newlines()
			}
			break
		}
		p.next()
		p.newlines()
	}
	return list
}

// name resolves a variable.
func (p *parser) name(name string) *nameExpr {
	if slot, ok := p.params[name]; ok {
		return &nameExpr{name: name, slot: slot, local: true}
	}
	slot, ok := p.prog.globals[name]
	if !ok {
		slot = len(p.prog.globals)
		p.prog.globals[name] = slot
	}
	return &nameExpr{name: name, slot: slot}
}

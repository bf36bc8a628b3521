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
		if _, also := p.prog.globals[f.name]; also {
			p.fail("function `%s' called with space between name and `(',\nor used as a variable or an array", f.name)
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
		if first, twice := f.params[p.tok.text]; twice {
			p.fail("function `%s': parameter #%d, `%s', duplicates parameter #%d", f.name, len(f.params)+1, p.tok.text, first+1)
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

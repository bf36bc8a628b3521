package syntax

import "fmt"

// maxDepth is how deep a program may nest.
const maxDepth = 400

type parser struct {
	lex      lexer
	tok      token
	prog     *Program
	params   map[string]int // of the function being read
	depth    int
	noIn     bool
	noGt     bool
	inFunc   bool
	loops    int
	switches int
}

// Parse reads a program.
func Parse(src string) (prog *Program, err error) {
	p := &parser{lex: lexer{src: src, line: 1}}
	p.lex.last.kind = tNewline
	p.prog = &Program{Funcs: map[string]*function{}, Globals: map[string]int{}}
	defer func() {
		if r := recover(); r != nil {
			switch e := r.(type) {
			case *syntaxError:
				err = e
			case *UndefinedError:
				err = e
			default:
				panic(r)
			}
		}
	}()
	p.next()
	p.items()
	for _, f := range p.prog.Funcs {
		if !f.Defined {
			panic(&UndefinedError{f.Name})
		}
		if _, also := p.prog.Globals[f.Name]; also {
			p.fail("function `%s' called with space between name and `(',\nor used as a variable or an array", f.Name)
		}
	}
	return p.prog, nil
}

// UndefinedError is a function that is called and not there.
type UndefinedError struct{ name string }

func (e *UndefinedError) Error() string { return "fatal: function `" + e.name + "' not defined" }

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
	list := map[string]*[]*Stmt{
		"BEGIN": &p.prog.Begin, "END": &p.prog.End, "BEGINFILE": &p.prog.BeginFile, "ENDFILE": &p.prog.EndFile,
	}[p.tok.text]
	p.next()
	if !p.isOp("{") {
		p.fail("syntax error")
	}
	*list = append(*list, p.block())
}

func (p *parser) rule() {
	r := &Rule{Line: p.tok.line}
	if !p.isOp("{") {
		r.From = p.expr()
		if p.isOp(",") {
			p.next()
			p.newlines()
			r.To = p.expr()
		}
	}
	if p.isOp("{") {
		r.Body = p.block()
	}
	p.prog.Rules = append(p.prog.Rules, r)
}

func (p *parser) function() {
	p.next()
	if p.tok.kind != tName && p.tok.kind != tFuncName {
		p.fail("syntax error")
	}
	f := p.funcNamed(p.tok.text)
	if f.Defined {
		p.fail("function name `%s' previously defined", f.Name)
	}
	f.Defined = true
	p.next()
	p.want("(")
	f.params = map[string]int{}
	for p.newlines(); !p.isOp(")"); {
		if p.tok.kind != tName {
			p.fail("syntax error")
		}
		if first, twice := f.params[p.tok.text]; twice {
			p.fail("function `%s': parameter #%d, `%s', duplicates parameter #%d", f.Name, len(f.params)+1, p.tok.text, first+1)
		}
		f.params[p.tok.text] = len(f.params)
		p.next()
		p.newlines()
		if p.isOp(",") {
			p.next()
			p.newlines()
		}
	}
	f.Count = len(f.params)
	p.next()
	p.newlines()
	p.params, p.inFunc = f.params, true
	f.Body = p.block()
	p.params, p.inFunc = nil, false
}

func (p *parser) funcNamed(name string) *function {
	f := p.prog.Funcs[name]
	if f == nil {
		f = &function{Name: name, line: p.tok.line}
		p.prog.Funcs[name] = f
	}
	return f
}

// list reads expressions with commas between.
func (p *parser) list(end string) []Expr {
	var list []Expr
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
func (p *parser) name(name string) *NameExpr {
	if slot, ok := p.params[name]; ok {
		return &NameExpr{Name: name, Slot: slot, Local: true}
	}
	slot, ok := p.prog.Globals[name]
	if !ok {
		slot = len(p.prog.Globals)
		p.prog.Globals[name] = slot
	}
	return &NameExpr{Name: name, Slot: slot}
}

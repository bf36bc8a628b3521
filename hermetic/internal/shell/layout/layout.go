// Package layout writes a function the way bash prints it (declare -f, type).
package layout

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Function writes the definition of a function; body was parsed from text.
func Function(name string, body *syntax.Stmt, text string) string {
	p := &printer{text: text}
	p.b.WriteString(name + " () \n")
	if _, ok := body.Cmd.(*syntax.Block); ok {
		p.function(body)
	} else {
		p.b.WriteString("{ \n")
		p.indent++
		p.pad()
		p.stmt(body)
		p.indent--
		p.b.WriteString("\n}")
	}
	p.b.WriteByte('\n')
	return p.b.String()
}

type printer struct {
	b      strings.Builder
	text   string
	indent int
	docs   []*syntax.Redirect // here-documents to be written at the end of the line
}

func (p *printer) pad() { p.b.WriteString(strings.Repeat("    ", p.indent)) }

func (p *printer) raw(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(p.text) || from >= to {
		return ""
	}
	return p.text[from:to]
}

func (p *printer) function(body *syntax.Stmt) {
	p.b.WriteString("{ \n")
	p.indent++
	p.list(body.Cmd.(*syntax.Block).Stmts)
	p.indent--
	p.b.WriteString("\n")
	p.pad()
	p.b.WriteString("}")
	p.redirs(body.Redirs)
}

// list writes statements, one per line, without a newline at the end.
func (p *printer) list(stmts []*syntax.Stmt) {
	for i, st := range stmts {
		p.pad()
		p.stmt(st)
		last := i == len(stmts)-1
		hadDocs := len(p.docs) > 0
		switch {
		case st.Background:
			p.b.WriteString(" &")
		case !last && !hadDocs:
			p.b.WriteByte(';')
		}
		p.flushDocs()
		if !last {
			p.b.WriteByte('\n')
		}
	}
}

func (p *printer) flushDocs() {
	for _, r := range p.docs {
		p.b.WriteByte('\n')
		if r.Hdoc != nil {
			body := p.raw(r.Hdoc)
			p.b.WriteString(body[:strings.LastIndexByte(body, '\n')+1])
		}
		p.b.WriteString(delimiter(p.raw(r.Word)))
		p.b.WriteByte('\n')
	}
	p.docs = nil
}

func delimiter(s string) string { return strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(s) }

func (p *printer) redirs(list []*syntax.Redirect) {
	for _, r := range list {
		p.b.WriteByte(' ')
		n := ""
		if r.N != nil {
			n = r.N.Value
		}
		p.b.WriteString(n + r.Op.String())
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.docs = append(p.docs, r)
			p.b.WriteString(p.raw(r.Word))
		case syntax.DplIn, syntax.DplOut:
			p.b.WriteString(p.raw(r.Word))
		default:
			p.b.WriteString(" " + p.raw(r.Word))
		}
	}
}

func (p *printer) stmt(st *syntax.Stmt) {
	if st.Negated {
		p.b.WriteString("! ")
	}
	if st.Cmd != nil {
		p.command(st.Cmd)
	}
	p.redirs(st.Redirs)
}

func (p *printer) block(word string, stmts []*syntax.Stmt) {
	p.b.WriteString(word + "\n")
	p.indent++
	p.list(stmts)
	p.indent--
	p.b.WriteString(";\n")
	p.pad()
}

// inline writes a condition: its statements on one line.
func (p *printer) inline(stmts []*syntax.Stmt) {
	for i, st := range stmts {
		if i > 0 {
			p.b.WriteString("; ")
		}
		p.stmt(st)
	}
}

func (p *printer) command(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		p.call(c)
	case *syntax.DeclClause:
		p.b.WriteString(c.Variant.Value)
		for _, a := range c.Args {
			p.b.WriteString(" " + p.raw(a))
		}
	case *syntax.Block:
		p.b.WriteString("{ \n")
		p.indent++
		p.list(c.Stmts)
		p.indent--
		p.b.WriteString("\n")
		p.pad()
		p.b.WriteString("}")
	case *syntax.Subshell:
		p.subshell(c)
	case *syntax.BinaryCmd:
		op := c.Op.String()
		if c.Op == syntax.PipeAll {
			op = "2>&1 |"
		}
		p.stmt(c.X)
		p.b.WriteString(" " + op + " ")
		p.stmt(c.Y)
	case *syntax.IfClause:
		p.ifClause(c, "if")
		p.b.WriteString("fi")
	case *syntax.WhileClause:
		p.whileClause(c)
	case *syntax.ForClause:
		p.forClause(c)
	case *syntax.CaseClause:
		p.caseClause(c)
	case *syntax.FuncDecl:
		if c.Name != nil {
			p.b.WriteString("function " + c.Name.Value + " () \n")
			p.pad()
			p.stmt(c.Body)
		}
	case *syntax.TimeClause:
		p.b.WriteString("time ")
		if c.Stmt != nil {
			p.stmt(c.Stmt)
		}
	default:
		p.b.WriteString(p.raw(cmd))
	}
}

func (p *printer) call(c *syntax.CallExpr) {
	words := make([]string, 0, len(c.Assigns)+len(c.Args))
	for _, a := range c.Assigns {
		words = append(words, p.raw(a))
	}
	for _, w := range c.Args {
		words = append(words, p.raw(w))
	}
	p.b.WriteString(strings.Join(words, " "))
}

func (p *printer) subshell(c *syntax.Subshell) {
	p.b.WriteString("( ")
	for i, st := range c.Stmts {
		if i > 0 {
			p.b.WriteString(";\n")
			p.pad()
		}
		p.stmt(st)
	}
	p.b.WriteString(" )")
}

func (p *printer) whileClause(c *syntax.WhileClause) {
	word := "while "
	if c.Until {
		word = "until "
	}
	p.b.WriteString(word)
	p.inline(c.Cond)
	p.block("; do", c.Do)
	p.b.WriteString("done")
}

func (p *printer) ifClause(c *syntax.IfClause, word string) {
	p.b.WriteString(word + " ")
	p.inline(c.Cond)
	p.block("; then", c.Then)
	if c.Else == nil {
		return
	}
	if len(c.Else.Cond) > 0 {
		p.b.WriteString("else\n")
		p.indent++
		p.pad()
		p.ifClause(c.Else, "if")
		p.b.WriteString("fi")
		p.indent--
		p.b.WriteString(";\n")
		p.pad()
		return
	}
	p.block("else", c.Else.Then)
}

func (p *printer) forClause(c *syntax.ForClause) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		word := "for "
		if c.Select {
			word = "select "
		}
		p.b.WriteString(word + l.Name.Value)
		if l.InPos.IsValid() {
			p.b.WriteString(" in")
			for _, w := range l.Items {
				p.b.WriteString(" " + p.raw(w))
			}
			p.b.WriteString(";\n")
		} else {
			p.b.WriteString(" in \"$@\";\n")
		}
		p.pad()
	case *syntax.CStyleLoop:
		p.b.WriteString("for " + p.raw(l) + "\n")
		p.pad()
	}
	p.block("do", c.Do)
	p.b.WriteString("done")
}

func (p *printer) caseClause(c *syntax.CaseClause) {
	p.b.WriteString("case " + p.raw(c.Word) + " in \n")
	p.indent++
	for _, it := range c.Items {
		p.pad()
		pats := make([]string, len(it.Patterns))
		for i, w := range it.Patterns {
			pats[i] = p.raw(w)
		}
		p.b.WriteString(strings.Join(pats, " | ") + ")\n")
		p.indent++
		p.list(it.Stmts)
		p.indent--
		p.b.WriteString("\n")
		p.pad()
		op := it.Op.String()
		if !it.OpPos.IsValid() {
			op = ";;"
		}
		p.b.WriteString(op + "\n")
	}
	p.indent--
	p.pad()
	p.b.WriteString("esac")
}

package shell

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/arith"
)

// arithVars lets expressions at the shell's variables.
type arithVars struct{ sh *shell }

func (a arithVars) Get(name, index string, indexed bool) (string, error) {
	sh := a.sh
	if indexed {
		s, ok := sh.element(sh.resolve(name), sh.assocKey(name, index))
		if !ok && sh.on(optNoUnset) {
			sh.errorf("%s[%s]: unbound variable", name, index)
			panic(ended{sh.fatalStatus()})
		}
		return s, nil
	}
	v := sh.lookup(name)
	if v == nil && sh.on(optNoUnset) {
		sh.errorf("%s: unbound variable", name)
		panic(ended{sh.fatalStatus()})
	}
	if v == nil {
		return "", nil
	}
	s, _ := v.scalar()
	return s, nil
}

func (a arithVars) Set(name, index string, indexed bool, value int64) error {
	ok := false
	if indexed {
		ok = a.sh.setElement(name, a.sh.assocKey(name, index), itoa(value), false)
	} else {
		ok = a.sh.setString(name, itoa(value))
	}
	if !ok {
		panic(discard{1})
	}
	return nil
}

// assocKey takes the quotes off a subscript of an associative array.
func (sh *shell) assocKey(name, index string) string {
	if v := sh.lookup(sh.resolve(name)); v != nil && v.kind == assocVar {
		return strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(index)
	}
	return index
}

// maxSums bounds expressions that are subscripts of expressions: package arith
// sees names that stand for expressions, and not what their subscripts name.
const maxSums = 128

func (sh *shell) sum(text string) (int64, error) {
	if sh.sums >= maxSums {
		return 0, &arith.Error{Text: fmt.Sprintf("%s: expression recursion level exceeded (error token is \"%s\")", text, text)}
	}
	sh.sums++
	defer func() { sh.sums-- }()
	return arith.Eval(text, arithVars{sh})
}

// arith evaluates a text; a mistake ends the commands of this line.
func (sh *shell) arith(text string) int64 {
	n, err := sh.sum(text)
	if err != nil {
		var e *arith.Error
		if !errors.As(err, &e) {
			panic(err)
		}
		sh.discardf("%s", e.Text)
	}
	return n
}

// arithTry evaluates for a builtin, which goes on after a mistake.
func (sh *shell) arithTry(who, text string) (int64, bool) {
	n, err := sh.sum(text)
	if err != nil {
		sh.errorf("%s%s", who, err)
		return 0, false
	}
	return n, true
}

func (sh *shell) arithExpr(x syntax.ArithmExpr) int64 {
	if x == nil {
		return 0
	}
	return sh.arith(sh.arithText(x))
}

// arithText is the text of an expression after its expansions, which are not
// kept together: they are text, as in bash.
func (sh *shell) arithText(x syntax.ArithmExpr) string {
	var b strings.Builder
	sh.writeArith(&b, x)
	return b.String()
}

func (sh *shell) writeArith(b *strings.Builder, x syntax.ArithmExpr) {
	if sh.tree++; sh.tree > maxTree {
		sh.tree = 0
		sh.tooNested()
	}
	defer func() { sh.tree-- }()
	switch x := x.(type) {
	case *syntax.Word:
		sh.writeArithWord(b, x)
	case *syntax.ParenArithm:
		b.WriteByte('(')
		sh.writeArith(b, x.X)
		b.WriteByte(')')
	case *syntax.UnaryArithm:
		if x.Post {
			sh.writeArith(b, x.X)
			b.WriteString(x.Op.String())
			return
		}
		b.WriteString(x.Op.String())
		if _, ok := x.X.(*syntax.UnaryArithm); ok {
			b.WriteByte(' ')
		}
		sh.writeArith(b, x.X)
	case *syntax.BinaryArithm:
		sh.writeArith(b, x.X)
		sep := " "
		if x.X.End() == x.OpPos || x.Op == syntax.Comma || x.Op == syntax.TernColon {
			sep = ""
		}
		b.WriteString(sep + x.Op.String())
		if x.Y.Pos().Offset() > x.OpPos.Offset()+uint(len(x.Op.String())) || sep != "" {
			b.WriteByte(' ')
		}
		sh.writeArith(b, x.Y)
	default:
		sh.discardf("syntax error in expression")
	}
}

func (sh *shell) writeArithWord(b *strings.Builder, w *syntax.Word) {
	for _, p := range w.Parts {
		if p, ok := p.(*syntax.ParamExp); ok && p.Short && !p.Dollar.IsValid() {
			b.WriteString(p.Param.Value)
			if p.Index != nil {
				b.WriteString("[" + sh.subscript(p.Param.Value, p.Index) + "]")
			}
			continue
		}
		e := sh.expander(false)
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(strings.ReplaceAll(lit.Value, "\\\n", ""))
			continue
		}
		e.part(p, true)
		b.WriteString(e.cur.text.String())
	}
}

// subscript is the expanded text of an index: a key as it is written for an
// associative array, or else an expression.
func (sh *shell) subscript(name string, x syntax.ArithmExpr) string {
	if v := sh.lookup(sh.resolve(name)); v != nil && v.kind == assocVar {
		return sh.keyText(x)
	}
	if w, ok := x.(*syntax.Word); ok {
		if lit := w.Lit(); lit != "" {
			return lit
		}
	}
	return sh.arithText(x)
}

// keyText expands an index as a word: what stands between the brackets is its
// text, operators of arithmetic included.
func (sh *shell) keyText(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return sh.str(w)
	}
	if w := sh.parseWordQuoted(sh.source(x)); w != nil {
		return sh.str(w)
	}
	return sh.source(x)
}

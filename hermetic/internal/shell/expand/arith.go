package expand

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/arith"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// arithVars gives expressions the variables of the shell.
type arithVars struct{ sh *state.Shell }

func (a arithVars) Get(name, index string, indexed bool) (string, error) {
	sh := a.sh
	if indexed {
		s, ok := sh.Vars.Element(sh.Vars.Resolve(name), assocKey(sh, name, index))
		if !ok && sh.Options.On(options.NoUnset) {
			sh.Errorf("%s[%s]: unbound variable", name, index)
			panic(state.Ended{Status: fatalStatus(sh)})
		}
		return s, nil
	}
	v := sh.Vars.Lookup(name)
	if v == nil && sh.Options.On(options.NoUnset) {
		sh.Errorf("%s: unbound variable", name)
		panic(state.Ended{Status: fatalStatus(sh)})
	}
	if v == nil {
		return "", nil
	}
	s, _ := v.Scalar()
	return s, nil
}

func (a arithVars) Set(name, index string, indexed bool, value int64) error {
	ok := false
	if indexed {
		ok = a.sh.Vars.SetElement(name, assocKey(a.sh, name, index), strconv.FormatInt(value, 10), false)
	} else {
		ok = a.sh.Vars.Set(name, strconv.FormatInt(value, 10))
	}
	if !ok {
		panic(state.Discard{Status: 1})
	}
	return nil
}

// assocKey removes the quotes from a subscript of an associative array.
func assocKey(sh *state.Shell, name, index string) string {
	if v := sh.Vars.Lookup(sh.Vars.Resolve(name)); v != nil && v.Kind == vars.Assoc {
		return strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(index)
	}
	return index
}

// maxSums bounds expressions in subscripts of expressions. Package arith bounds
// names whose values are expressions, but does not see into subscripts.
const maxSums = 128

// sum evaluates a text, and counts how deep expressions are inside each other.
func sum(sh *state.Shell, text string) (int64, error) {
	if sh.Work.Sums >= maxSums {
		return 0, &arith.Error{Text: fmt.Sprintf("%s: expression recursion level exceeded (error token is \"%s\")", text, text)}
	}
	sh.Work.Sums++
	defer func() { sh.Work.Sums-- }()
	return arith.Eval(text, arithVars{sh})
}

// Arith evaluates a text. A mistake ends the commands of the line.
func Arith(sh *state.Shell, text string) int64 {
	n, err := sum(sh, text)
	if err != nil {
		var e *arith.Error
		if !errors.As(err, &e) {
			panic(err)
		}
		sh.Discardf("%s", e.Text)
	}
	return n
}

// TryArith evaluates a text for a builtin: after a mistake it writes a message
// that begins with who, and reports false.
func TryArith(sh *state.Shell, who, text string) (int64, bool) {
	n, err := sum(sh, text)
	if err != nil {
		sh.Errorf("%s%s", who, err)
		return 0, false
	}
	return n, true
}

// arithExpr evaluates an expression; nil is 0.
func arithExpr(sh *state.Shell, x syntax.ArithmExpr) int64 {
	if x == nil {
		return 0
	}
	return Arith(sh, ArithText(sh, x))
}

// ArithText is the text of an expression after its expansions. Their results
// are text like the rest, as in bash: parts of them can be operators.
func ArithText(sh *state.Shell, x syntax.ArithmExpr) string {
	var b strings.Builder
	writeArith(sh, &b, x)
	return b.String()
}

// writeArith writes the text of one node.
func writeArith(sh *state.Shell, b *strings.Builder, x syntax.ArithmExpr) {
	if sh.Work.Tree++; sh.Work.Tree > state.MaxTree {
		sh.Work.Tree = 0
		sh.TooNested()
	}
	defer func() { sh.Work.Tree-- }()
	switch x := x.(type) {
	case *syntax.Word:
		writeArithWord(sh, b, x)
	case *syntax.ParenArithm:
		b.WriteByte('(')
		writeArith(sh, b, x.X)
		b.WriteByte(')')
	case *syntax.UnaryArithm:
		if x.Post {
			writeArith(sh, b, x.X)
			b.WriteString(x.Op.String())
			return
		}
		b.WriteString(x.Op.String())
		if _, ok := x.X.(*syntax.UnaryArithm); ok {
			b.WriteByte(' ')
		}
		writeArith(sh, b, x.X)
	case *syntax.BinaryArithm:
		writeArith(sh, b, x.X)
		sep := " "
		if x.X.End() == x.OpPos || x.Op == syntax.Comma || x.Op == syntax.TernColon {
			sep = ""
		}
		b.WriteString(sep + x.Op.String())
		if x.Y.Pos().Offset() > x.OpPos.Offset()+uint(len(x.Op.String())) || sep != "" {
			b.WriteByte(' ')
		}
		writeArith(sh, b, x.Y)
	default:
		sh.Discardf("syntax error in expression")
	}
}

func writeArithWord(sh *state.Shell, b *strings.Builder, w *syntax.Word) {
	for _, p := range w.Parts {
		if p, ok := p.(*syntax.ParamExp); ok && p.Short && !p.Dollar.IsValid() {
			b.WriteString(p.Param.Value)
			if p.Index != nil {
				b.WriteString("[" + Subscript(sh, p.Param.Value, p.Index) + "]")
			}
			continue
		}
		e := newExpansion(sh, false)
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(strings.ReplaceAll(lit.Value, "\\\n", ""))
			continue
		}
		e.part(p, true)
		b.WriteString(e.cur.text.String())
	}
}

// Subscript is the text of a subscript after its expansions: a key if name is
// an associative array, an expression otherwise.
func Subscript(sh *state.Shell, name string, x syntax.ArithmExpr) string {
	if v := sh.Vars.Lookup(sh.Vars.Resolve(name)); v != nil && v.Kind == vars.Assoc {
		return KeyText(sh, x)
	}
	if w, ok := x.(*syntax.Word); ok {
		if lit := w.Lit(); lit != "" {
			return lit
		}
	}
	return ArithText(sh, x)
}

// KeyText expands a subscript as a word: it is text, even what looks like
// arithmetic.
func KeyText(sh *state.Shell, x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return String(sh, w)
	}
	if w := parseWordQuoted(sh, sh.Source(x)); w != nil {
		return String(sh, w)
	}
	return sh.Source(x)
}

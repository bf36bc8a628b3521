// Package expand turns the words of a command into text: parameters, braces,
// tildes, splitting, globs, patterns and arithmetic.
//
//	args := expand.Fields(sh, call.Args)     // as arguments: split, globbed
//	text := expand.String(sh, word)          // as one text: not split
//	text := expand.Value(sh, assign.Value)   // as the value of an assignment
//	pat := expand.Pattern(sh, item.Word)     // as a pattern
//	n := expand.Arith(sh, "x + 1")
//
// A mistake in an expansion ends the commands of the line (a panic of
// state.Discard) or the shell (state.Ended), as in bash. $(...) and <(...) are
// run by the interpreter, which the shell reaches through state.Interpreter.
package expand

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/pattern"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// newExpansion begins an expansion, which makes several fields if split is
// true.
func newExpansion(sh *state.Shell, split bool) *expansion {
	e := &expansion{sh: sh, split: split}
	if split {
		e.ifs = IFS(sh)
	}
	return e
}

// Fields expands words as the arguments of a command.
func Fields(sh *state.Shell, words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		if lit, ok := plainWord(w); ok {
			out = append(out, lit)
			continue
		}
		for _, b := range braces(sh, w) {
			out = append(out, wordFields(sh, b)...)
		}
		sh.CheckGlobs(len(out) - 1) // without the command's name
	}
	return out
}

// plainWord is the text of a word that needs no expansion; false if it does.
func plainWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if !strings.ContainsAny(p.Value, "\\~{*?[") {
			return p.Value, true
		}
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value, true
		}
	}
	return "", false
}

// wordFields expands one word, whose braces are expanded already.
func wordFields(sh *state.Shell, w *syntax.Word) []string {
	e := newExpansion(sh, true)
	e.word(w)
	if e.cur.there {
		e.flush()
	}
	var out []string
	for i := range e.done {
		f := &e.done[i]
		if !f.glob || sh.Options.On(options.NoGlob) {
			out = append(out, f.text.String())
			continue
		}
		out = append(out, glob(sh, f)...)
	}
	return out
}

// String expands a word without splitting it.
func String(sh *state.Shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if lit, ok := plainWord(w); ok {
		return lit
	}
	e := newExpansion(sh, false)
	e.word(w)
	return e.cur.text.String()
}

// WithQuotes is String, and reports which bytes of the result were quoted; nil
// if none were.
func WithQuotes(sh *state.Shell, w *syntax.Word) (text string, quoted []bool) {
	e := newExpansion(sh, false)
	e.word(w)
	return e.cur.text.String(), e.cur.quoted
}

// Value expands the value of an assignment: as String, with tildes also after
// every colon.
func Value(sh *state.Shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := newExpansion(sh, false)
	e.assign = true
	e.word(w)
	return e.cur.text.String()
}

// Pattern expands a word to a pattern. Quoted characters match themselves.
func Pattern(sh *state.Shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := newExpansion(sh, false)
	e.word(w)
	return e.cur.pattern()
}

// Compile compiles a pattern. Its work counts for the limits.
func Compile(sh *state.Shell, text string, fold bool) *pattern.Pattern {
	return pattern.Compile(text, pattern.Options{Fold: fold, Ext: true, Step: func(n int) { step(sh, n) }})
}

// step counts the work of a pattern, and ends the shell if a limit is exceeded
// or its context has ended.
func step(sh *state.Shell, n int) {
	if sh.Work.Steps += n; sh.Work.Steps < 10_000 {
		return
	}
	if sh.Session.Budget.Steps(int64(sh.Work.Steps)) != nil {
		panic(state.Ended{Status: 126})
	}
	sh.Work.Steps = 0
	if sh.Ctx.Err() != nil {
		sh.Check()
	}
}

// word adds a word.
func (e *expansion) word(w *syntax.Word) {
	if w == nil {
		return
	}
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && !e.inQuote {
			e.literal(lit.Value, i == 0, i == len(w.Parts)-1)
			continue
		}
		e.part(p, e.inQuote)
	}
}

// part adds one part of a word.
func (e *expansion) part(p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			e.add(unquoteDouble(p.Value), true)
		} else {
			e.literal(p.Value, false, false)
		}
	case *syntax.SglQuoted:
		switch {
		case p.Dollar:
			e.add(quote.DecodeANSI(p.Value), true)
		case quoted:
			e.add("'"+p.Value+"'", true)
		default:
			e.add(p.Value, true)
		}
	case *syntax.DblQuoted:
		e.double(p)
	case *syntax.ParamExp:
		e.param(p, quoted)
	case *syntax.CmdSubst:
		e.value(e.sh.CommandSubst(p), quoted)
	case *syntax.ArithmExp:
		e.value(strconv.FormatInt(arithExpr(e.sh, p.X), 10), quoted)
	case *syntax.ProcSubst:
		e.add(e.sh.ProcessSubst(p), true)
	case *syntax.ExtGlob:
		e.extGlob(p)
	}
}

// FirstLit is the literal text that a word begins with; false if it begins with
// something else.
func FirstLit(w *syntax.Word) (string, bool) {
	if len(w.Parts) == 0 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

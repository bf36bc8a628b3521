package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/pattern"
)

// field is one word that an expansion makes, and which bytes of it a quote took
// the meaning from.
type field struct {
	text   strings.Builder
	quoted []bool // nil: none so far
	glob   bool   // a special character was not quoted
	there  bool   // it is a field even when it is empty
}

func (f *field) add(s string, quoted bool) {
	if quoted && f.quoted == nil {
		f.quoted = make([]bool, f.text.Len(), f.text.Len()+len(s))
	}
	if f.quoted != nil {
		for range len(s) {
			f.quoted = append(f.quoted, quoted)
		}
	}
	if !quoted && !f.glob && strings.ContainsAny(s, `*?[(\`) {
		f.glob = true
	}
	f.text.WriteString(s)
}

// pattern is the field with a backslash before what was quoted.
func (f *field) pattern() string {
	s := f.text.String()
	if f.quoted == nil {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if f.quoted[i] && strings.IndexByte(`\*?[]()|+@!-^/.`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// expansion is one word on its way to fields.
type expansion struct {
	sh      *shell
	done    []field
	cur     field
	split   bool // split at IFS, and give $@ a field each
	ifs     string
	closed  bool // whitespace ended the last field, nothing came since
	assign  bool // tildes after : too
	inQuote bool
	bytes   int
}

func (e *expansion) flush() {
	e.done = append(e.done, e.cur)
	e.cur = field{}
	e.sh.checkGlobs(len(e.done) - 1) // without the command's name
}

// add puts text into the field at hand as it is.
func (e *expansion) add(s string, quoted bool) {
	if s == "" && !quoted {
		return
	}
	e.bytes += len(s)
	e.sh.checkLen(e.bytes)
	e.cur.add(s, quoted)
	e.cur.there, e.closed = true, false
}

// value puts the result of an expansion in, and splits it when it is not
// quoted.
func (e *expansion) value(s string, quoted bool) {
	if quoted || !e.split {
		e.add(s, quoted)
		return
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(e.ifs, s[i]) < 0 {
			continue
		}
		e.add(s[start:i], false)
		start = i + 1
		white := s[i] == ' ' || s[i] == '\t' || s[i] == '\n'
		switch {
		case e.cur.there:
			e.flush()
			e.closed = white
		case !white && e.closed:
			e.closed = false
		case !white:
			e.flush()
		}
	}
	e.add(s[start:], false)
}

// list puts several values in: a field each where fields are split.
func (e *expansion) list(vals []string, star, quoted bool) {
	if star && (quoted || !e.split) || !e.split {
		sep := " "
		if star {
			sep = e.sh.starSeparator()
		}
		if quoted || len(vals) > 0 {
			e.add(strings.Join(vals, sep), quoted)
		}
		return
	}
	for i, v := range vals {
		if i > 0 {
			if quoted || e.cur.there {
				e.flush()
			}
			e.closed = true
		}
		if quoted {
			e.add(v, true)
			continue
		}
		e.value(v, false)
	}
}

// starSeparator joins "$*".
func (sh *shell) starSeparator() string {
	v := sh.lookup("IFS")
	if v == nil || !v.isSet {
		return " "
	}
	if v.str == "" {
		return ""
	}
	return firstChar(v.str)
}

func (sh *shell) ifs() string {
	v := sh.lookup("IFS")
	if v == nil || !v.isSet {
		return " \t\n"
	}
	return v.str
}

func (sh *shell) expander(split bool) *expansion {
	e := &expansion{sh: sh, split: split}
	if split {
		e.ifs = sh.ifs()
	}
	return e
}

// fields expands words as the arguments of a command.
func (sh *shell) fields(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		if lit, ok := plainWord(w); ok {
			out = append(out, lit)
			continue
		}
		for _, b := range sh.braces(w) {
			out = append(out, sh.wordFields(b)...)
		}
		sh.checkGlobs(len(out) - 1) // without the command's name
	}
	return out
}

// plainWord is the quick way for a word without anything to expand.
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

func (sh *shell) wordFields(w *syntax.Word) []string {
	e := sh.expander(true)
	e.word(w)
	if e.cur.there {
		e.flush()
	}
	var out []string
	for i := range e.done {
		f := &e.done[i]
		if !f.glob || sh.on(optNoGlob) {
			out = append(out, f.text.String())
			continue
		}
		out = append(out, sh.glob(f)...)
	}
	return out
}

// str expands a word without splitting: the value of an assignment, the word of
// case.
func (sh *shell) str(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if lit, ok := plainWord(w); ok {
		return lit
	}
	e := sh.expander(false)
	e.word(w)
	return e.cur.text.String()
}

// assigned is str with tildes after every colon.
func (sh *shell) assigned(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := sh.expander(false)
	e.assign = true
	e.word(w)
	return e.cur.text.String()
}

// patternOf expands a word to a pattern: what was quoted stands for itself.
func (sh *shell) patternOf(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := sh.expander(false)
	e.word(w)
	return e.cur.pattern()
}

// compile is the pattern that text is under the options.
func (sh *shell) compile(text string, fold bool) *pattern.Pattern {
	return pattern.Compile(text, pattern.Options{Fold: fold, Ext: true, Step: sh.step})
}

// step counts the work of a pattern, and looks whether it is to go on.
func (sh *shell) step(n int) {
	if sh.steps += n; sh.steps < 10_000 {
		return
	}
	if sh.ses.Budget.Steps(int64(sh.steps)) != nil {
		panic(ended{126})
	}
	sh.steps = 0
	if sh.ctx.Err() != nil {
		sh.check()
	}
}

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

// part puts one part of a word in.
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
			e.add(ansiC(p.Value), true)
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
		e.value(e.sh.cmdSubst(p), quoted)
	case *syntax.ArithmExp:
		e.value(itoa(e.sh.arithExpr(p.X)), quoted)
	case *syntax.ProcSubst:
		e.add(e.sh.procSubst(p), true)
	case *syntax.ExtGlob:
		e.extGlob(p)
	}
}

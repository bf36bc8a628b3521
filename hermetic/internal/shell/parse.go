package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/limits"
)

// commandUnit names the text of -c, whose functions have no file.
const commandUnit = "environment"

func (sh *shell) unitBase() int {
	if sh.unit == nil {
		return 0
	}
	return sh.unit.base
}

// source is the text of a node as it was written.
func (sh *shell) source(n syntax.Node) string {
	if sh.unit == nil || n == nil {
		return ""
	}
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(sh.unit.text) || from >= to {
		return ""
	}
	return sh.unit.text[from:to]
}

func (sh *shell) sourceWords(words []*syntax.Word) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = sh.source(w)
	}
	return strings.Join(out, " ")
}

// parse reads a text; the error is ready to be told.
func (sh *shell) parse(text string) (*scan.Script, error) {
	l := sh.ses.Budget.Limits
	if int64(len(text)) > l.Source {
		sh.exceed(&limits.Exceeded{Name: "source", Limit: l.Source, What: "bytes are in one script"})
	}
	if !scan.Shallow(text, int(l.Nesting)) {
		sh.tooNested()
	}
	script := scan.Parse(text, int(l.Nesting))
	if script.Deep {
		sh.tooNested()
	}
	return script, nil
}

func (sh *shell) tooNested() {
	sh.exceed(&limits.Exceeded{Name: "nesting", Limit: sh.ses.Budget.Limits.Nesting, What: "pieces of syntax are inside each other"})
}

// runText parses and runs a whole script: line by line as bash does, so that
// what is before a mistake has run.
func (sh *shell) runText(text, name string) {
	text = strings.ReplaceAll(text, "\x00", "")
	script, _ := sh.parse(text)
	u := &unit{name: name, text: script.Text}
	old := sh.unit
	sh.unit = u
	defer func() { sh.unit = old }()
	sh.runScript(script, name == commandUnit)
}

// runScript runs the lines of a script. A mistake that ends a line does not end
// the script.
func (sh *shell) runScript(script *scan.Script, isCommand bool) {
	for _, group := range script.Lines {
		if sh.on(optVerbose) {
			sh.errText(script.TextOf(group) + "\n")
		}
		sh.seeAliases()
		sh.line1(group)
		if sh.flow != goesOn {
			if sh.flow == breaks || sh.flow == continues {
				sh.flow = goesOn
				continue
			}
			return
		}
	}
	for _, w := range script.Warnings {
		sh.line = w.Line + sh.unitBase()
		sh.errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		sh.syntaxError(m, isCommand)
	}
}

// line1 runs the statements of one line.
func (sh *shell) line1(group []*syntax.Stmt) {
	defer func() {
		if x := recover(); x != nil {
			d, ok := x.(discard)
			if !ok {
				panic(x)
			}
			sh.status = d.status
			sh.noErrExit, sh.tree = 0, 0
			if sh.on(optErrExit) || len(sh.frames) > 0 {
				panic(x)
			}
		}
	}()
	sh.stmts(group)
}

// syntaxError tells of a mistake as bash does, and ends the shell with 2.
func (sh *shell) syntaxError(m *scan.Mistake, isCommand bool) {
	name := sh.run.arg0
	if n := len(sh.frames); n > 0 && sh.frames[n-1].source != "" {
		name = sh.frames[n-1].source
	}
	if isCommand && len(sh.frames) == 0 {
		name += ": -c"
	}
	for _, l := range m.Say(name, sh.unitBase()) {
		sh.errText(l + "\n")
	}
	sh.status = 2
	if len(sh.frames) == 0 {
		sh.flow = exits
	}
}

// parseWord reads text as one word; nil when it is none.
func (sh *shell) parseWord(text string) *syntax.Word {
	if text == "" || !scan.Shallow(text, int(sh.ses.Budget.Limits.Nesting)) {
		return nil
	}
	return scan.Word(text, int(sh.ses.Budget.Limits.Nesting))
}

// parseWordQuoted reads text as the inside of double quotes is read, blanks and
// operators included.
func (sh *shell) parseWordQuoted(text string) *syntax.Word {
	if w := sh.parseWord(text); w != nil {
		return w
	}
	return sh.parseWord(`"` + strings.ReplaceAll(text, `"`, ``) + `"`)
}

// expandText expands a text as if in double quotes: the subscript that a name
// by reference has.
func (sh *shell) expandText(text string) string {
	if !strings.ContainsAny(text, "$`\\\"'") {
		return text
	}
	w := sh.parseWord(text)
	if w == nil {
		return text
	}
	return sh.str(w)
}

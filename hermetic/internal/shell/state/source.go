package state

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/limits"
)

// CommandUnit names the text of -c, whose functions have no file.
const CommandUnit = "environment"

// UnitBase is the number of lines before the text that is run.
func (sh *Shell) UnitBase() int {
	if sh.Unit == nil {
		return 0
	}
	return sh.Unit.Base
}

// Source is the text of a node as it was written.
func (sh *Shell) Source(n syntax.Node) string {
	if sh.Unit == nil || n == nil {
		return ""
	}
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(sh.Unit.Text) || from >= to {
		return ""
	}
	return sh.Unit.Text[from:to]
}

// SourceWords is the text of words as they were written.
func (sh *Shell) SourceWords(words []*syntax.Word) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = sh.Source(w)
	}
	return strings.Join(out, " ")
}

// Parse parses a text. It ends the session if the text is too long or nested
// too deeply. A mistake is part of the result.
func (sh *Shell) Parse(text string) *scan.Script {
	l := sh.Session.Budget.Limits
	if int64(len(text)) > l.Source {
		sh.Exceed(&limits.Exceeded{Name: "source", Limit: l.Source, What: "bytes are in one script"})
	}
	if !scan.Shallow(text, int(l.Nesting)) {
		sh.TooNested()
	}
	script := scan.Parse(text, int(l.Nesting))
	if script.Deep {
		sh.TooNested()
	}
	return script
}

// CommandText is $BASH_COMMAND.
func (sh *Shell) CommandText() string {
	if sh.Trapped != "" {
		return sh.Trapped
	}
	if sh.Current == nil {
		return ""
	}
	return sh.JobText(sh.Current)
}

// JobText is a command as jobs shows it.
func (sh *Shell) JobText(st *syntax.Stmt) string {
	text := sh.Source(st)
	text = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), ";"))
	if st.Background {
		text = strings.TrimSpace(strings.TrimSuffix(text, "&"))
	}
	return text
}

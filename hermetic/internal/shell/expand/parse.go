package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
)

// ParseWord reads text as one word; nil when it is none.
func ParseWord(sh *state.Shell, text string) *syntax.Word {
	if text == "" || !scan.Shallow(text, int(sh.Session.Budget.Limits.Nesting)) {
		return nil
	}
	return scan.Word(text, int(sh.Session.Budget.Limits.Nesting))
}

// parseWordQuoted reads text as the inside of double quotes is read, blanks and
// operators included.
func parseWordQuoted(sh *state.Shell, text string) *syntax.Word {
	if w := ParseWord(sh, text); w != nil {
		return w
	}
	return ParseWord(sh, `"`+strings.ReplaceAll(text, `"`, ``)+`"`)
}

// Text expands a text as if in double quotes: the subscript that a name
// by reference has.
func Text(sh *state.Shell, text string) string {
	if !strings.ContainsAny(text, "$`\\\"'") {
		return text
	}
	w := ParseWord(sh, text)
	if w == nil {
		return text
	}
	return String(sh, w)
}

// Quoted expands a text as if in double quotes.
func Quoted(sh *state.Shell, text string) string {
	w := ParseWord(sh, `"`+strings.ReplaceAll(text, `"`, `\"`)+`"`)
	if w == nil {
		return text
	}
	return String(sh, w)
}

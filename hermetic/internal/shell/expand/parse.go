package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
)

// ParseWord parses text as one word; nil if it is not one.
func ParseWord(sh *state.Shell, text string) *syntax.Word {
	if text == "" || !scan.Shallow(text, int(sh.Session.Budget.Limits.Nesting)) {
		return nil
	}
	return scan.Word(text, int(sh.Session.Budget.Limits.Nesting))
}

// parseWordQuoted parses text as one word, if need be as between double quotes:
// with blanks and operators in it.
func parseWordQuoted(sh *state.Shell, text string) *syntax.Word {
	if w := ParseWord(sh, text); w != nil {
		return w
	}
	return ParseWord(sh, `"`+strings.ReplaceAll(text, `"`, ``)+`"`)
}

// Text expands the subscript of a name that is itself a value, such as that of
// a nameref.
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

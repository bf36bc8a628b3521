package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// extGlob adds an extended pattern. What is between its bars is expanded as a
// word.
func (e *expansion) extGlob(p *syntax.ExtGlob) {
	e.add(p.Op.String(), false)
	text := p.Pattern.Value
	if !strings.ContainsAny(text, "$`'\"\\") {
		e.add(text+")", false)
		return
	}
	start := 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || strings.IndexByte("|()", text[i]) >= 0:
			if w := ParseWord(e.sh, text[start:i]); w != nil {
				split := e.split
				e.split = false
				e.word(w)
				e.split = split
			} else {
				e.add(text[start:i], false)
			}
			if i < len(text) {
				e.add(text[i:i+1], false)
			}
			start = i + 1
		case text[i] == '\\':
			i++
		case text[i] == '\'':
			for i++; i < len(text) && text[i] != '\''; i++ {
			}
		case text[i] == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case text[i] == '$' && i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '('):
			i = skipBraces(text, i+1)
		}
	}
	e.add(")", false)
}

// skipBraces is the index of the bracket that closes the one at text[at].
func skipBraces(text string, at int) int {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '{', '(':
			depth++
		case '}', ')':
			if depth--; depth == 0 {
				return at
			}
		}
	}
	return len(text) - 1
}

package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// literal adds unquoted text. A backslash quotes; a tilde at the beginning, and
// in assignments after a colon, is a directory.
func (e *expansion) literal(s string, first, last bool) {
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '~') < 0 {
		e.add(s, false)
		return
	}
	if first && strings.HasPrefix(s, "~") {
		s = e.tilde(s, last)
	}
	colon := e.assign
	if first && e.split && !e.assign {
		if name, rest, ok := strings.Cut(s, "="); ok && vars.ValidName(name) {
			colon = true
			if strings.HasPrefix(rest, "~") {
				e.add(name+"=", false)
				s = e.tilde(rest, last)
			}
		}
	}
	for s != "" {
		i := strings.IndexAny(s, "\\~")
		if i < 0 {
			e.add(s, false)
			return
		}
		e.add(s[:i], false)
		s = s[i:]
		switch {
		case s[0] == '~' && colon && i > 0 && strings.HasSuffix(e.cur.text.String(), ":"):
			rest := e.tilde(s, last)
			if rest == s {
				e.add("~", false)
				rest = s[1:]
			}
			s = rest
		case s[0] == '~':
			e.add("~", false)
			s = s[1:]
		case len(s) == 1:
			e.add(`\`, false)
			s = ""
		case s[1] == '\n':
			s = s[2:]
		default:
			_, size := chars.First(s[1:])
			e.add(s[1:1+size], true)
			s = s[1+size:]
		}
	}
}

// double adds text between double quotes.
func (e *expansion) double(p *syntax.DblQuoted) {
	was := e.inQuote
	e.inQuote = true
	if len(p.Parts) == 0 {
		e.add("", true)
	}
	for _, q := range p.Parts {
		e.part(q, true)
	}
	e.inQuote = was
}

// unquoteDouble removes the backslashes that quote between double quotes.
func unquoteDouble(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Document expands the body of a here-document.
func Document(sh *state.Shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := newExpansion(sh, false)
	e.inQuote = true
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			e.add(unquoteHere(lit.Value), true)
			continue
		}
		e.part(p, true)
	}
	return e.cur.text.String()
}

// unquoteHere is unquoteDouble for here-documents, where a double quote is an
// ordinary character.
func unquoteHere(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

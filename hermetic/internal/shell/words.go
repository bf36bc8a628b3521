package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal puts unquoted text in: backslashes quote, a tilde at the start (and
// in assignments after a colon) is a home.
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
		if name, rest, ok := strings.Cut(s, "="); ok && validName(name) {
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
			_, size := firstRune(s[1:])
			e.add(s[1:1+size], true)
			s = s[1+size:]
		}
	}
}

// tilde expands the prefix of s, which begins with ~, and reports what is left
// of s. Names of users are nobody here: they stay.
func (e *expansion) tilde(s string, last bool) string {
	end := strings.IndexAny(s, "/:")
	if end < 0 {
		if !last {
			return s
		}
		end = len(s)
	}
	var to string
	switch s[:end] {
	case "~":
		v := e.sh.lookup("HOME")
		if to = "/"; v != nil && v.isSet {
			to = v.str
		}
	case "~+":
		to = e.sh.get("PWD")
	case "~-":
		if to = e.sh.get("OLDPWD"); to == "" {
			return s
		}
	default:
		return s
	}
	e.add(to, true)
	return s[end:]
}

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

// extGlob puts an extended pattern in. Its text is a word of its own between
// the bars.
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
			if w := e.sh.parseWord(text[start:i]); w != nil {
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

// unquoteDouble takes the backslashes off that quote inside double quotes.
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

// document expands the body of a here-document.
func (sh *shell) document(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := sh.expander(false)
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

// unquoteHere is unquoteDouble, but a quote is not special.
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

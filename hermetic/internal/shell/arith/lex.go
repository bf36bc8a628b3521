package arith

import (
	"strings"
)

type token string

const (
	end    token = ""
	number token = "number"
	name   token = "name"
)

type parser struct {
	text   string
	at     int
	vars   Vars
	depth  int
	nested int
	skip   int // >0: evaluate nothing

	tok    token
	lastAt int // where tok begins; at the end, where the last one did
	value  int64
	id     string
	index  string
	hasIdx bool
}

// operators lists them, the longest first.
func operators() []token {
	return []token{
		"<<=", ">>=", "**", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
		"*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=",
		"+", "-", "*", "/", "%", "<", ">", "!", "~", "&", "|", "^", "?", ":", "=", ",", "(", ")",
	}
}

func isName(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func (p *parser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at < len(p.text) {
		p.lastAt = p.at
	}
	if p.at >= len(p.text) {
		p.tok = end
		return
	}
	c := p.text[p.at]
	switch {
	case '0' <= c && c <= '9':
		p.number()
		return
	case isName(c, true):
		p.name()
		return
	}
	rest := p.text[p.at:]
	if len(rest) >= 2 && (rest[:2] == "++" || rest[:2] == "--") && !p.stepHere(rest) {
		p.tok, p.at = token(rest[:1]), p.at+1
		return
	}
	for _, op := range operators() {
		if strings.HasPrefix(rest, string(op)) {
			p.tok, p.at = op, p.at+len(op)
			return
		}
	}
	p.fail("syntax error: operand expected", p.at)
}

// stepHere reports whether ++ or -- steps a variable, which is before or after
// it. Otherwise it is two signs.
func (p *parser) stepHere(rest string) bool {
	if p.tok == name {
		return true
	}
	after := strings.TrimLeft(rest[2:], " \t\n")
	return after != "" && isName(after[0], true)
}

func (p *parser) name() {
	start := p.at
	for p.at < len(p.text) && isName(p.text[p.at], false) {
		p.at++
	}
	p.tok, p.id, p.index, p.hasIdx = name, p.text[start:p.at], "", false
	if p.at < len(p.text) && p.text[p.at] == '[' {
		depth := 0
		for i := p.at; i < len(p.text); i++ {
			switch p.text[i] {
			case '\\':
				i++
			case '[':
				depth++
			case ']':
				if depth--; depth == 0 {
					p.index, p.hasIdx = p.text[p.at+1:i], true
					p.at = i + 1
					return
				}
			}
		}
		p.fail("bad array subscript", start)
	}
}

func (p *parser) number() {
	start := p.at
	for p.at < len(p.text) && (isName(p.text[p.at], false) || p.text[p.at] == '#' || p.text[p.at] == '@') {
		p.at++
	}
	p.tok = number
	text := p.text[start:p.at]
	base := uint64(10)
	digits := text
	switch {
	case strings.Contains(text, "#"):
		b, d, _ := strings.Cut(text, "#")
		base, digits = 0, d
		for i := 0; i < len(b); i++ {
			if b[i] < '0' || b[i] > '9' || base > 64 {
				p.fail("invalid number", start)
			}
			base = base*10 + uint64(b[i]-'0')
		}
		if base < 2 || base > 64 {
			p.fail("invalid arithmetic base", start)
		}
		if d == "" {
			p.fail("invalid integer constant", start)
		}
	case strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X"):
		base, digits = 16, text[2:]
	case text[0] == '0':
		base = 8
	}
	var n uint64
	for i := 0; i < len(digits); i++ {
		d := digit(digits[i], base)
		if d == '#' && digits[i] == '#' {
			p.fail("invalid number", start)
		}
		if d >= base {
			p.fail("value too great for base", start)
		}
		n = n*base + d
	}
	p.value = int64(n)
}

// digit is the value of c as a digit of a base. Up to base 36 both cases are
// the same.
func digit(c byte, base uint64) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c && c <= 'z':
		return uint64(c-'a') + 10
	case 'A' <= c && c <= 'Z' && base <= 36:
		return uint64(c-'A') + 10
	case 'A' <= c && c <= 'Z':
		return uint64(c-'A') + 36
	case c == '@':
		return 62
	case c == '_':
		return 63
	}
	return 1 << 16
}

package sed

import (
	"bytes"
	"strings"
)

// substitute reads s/regex/replacement/flags.
func (p *parser) substitute(in *instruction) error {
	d := p.next()
	text, ok := "", false
	if d != end && d != '\n' && d != '\\' {
		text, ok = p.delimited(byte(d), true)
	}
	replacement := ""
	if ok {
		replacement, ok = p.replacementText(byte(d))
	}
	if !ok {
		p.pos = len(p.text)
		return p.bad("unterminated `s' command")
	}
	s := &substitution{}
	in.sub = s
	s.parts = parseReplacement(replacement)
	flags, err := p.substituteFlags(s)
	if err != nil {
		return err
	}
	if s.re, err = p.compile(text, flags); err != nil {
		return err
	}
	for _, part := range s.parts {
		s.maxGroup = max(s.maxGroup, part.group)
	}
	if s.re != nil && s.maxGroup > s.re.Groups() {
		return p.bad("invalid reference \\%d on `s' command's RHS", s.maxGroup)
	}
	p.add(in)
	return nil
}

// replacementText reads up to the delimiter and keeps every escape but that of
// the delimiter, which is then a character.
func (p *parser) replacementText(d byte) (string, bool) {
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == d:
			return b.String(), true
		case c == '\\' && p.pos < len(p.text):
			e := p.text[p.pos]
			p.pos++
			if e != d || strings.IndexByte("&123456789", d) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(e)
		case c == '\\':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// substituteFlags reads what follows the last delimiter.
func (p *parser) substituteFlags(s *substitution) (f reFlags, err error) {
	for {
		c := p.next()
		switch {
		case c == 'i' || c == 'I':
			f.fold = true
		case c == 'm' || c == 'M':
			f.lines = true
		case c == 'e':
			if p.o.sandbox {
				return f, p.bad("e/r/w commands disabled in sandbox mode")
			}
			s.eval = true
		case c == 'p':
			if s.printing > 0 {
				return f, p.bad("multiple `p' options to `s' command")
			}
			s.printing = 1
			if s.eval {
				s.printing = 2
			}
		case c == 'g':
			if s.global {
				return f, p.bad("multiple `g' options to `s' command")
			}
			s.global = true
		case c >= '0' && c <= '9':
			n := p.number(c)
			if s.nth != 0 {
				return f, p.bad("multiple number options to `s' command")
			}
			if n == 0 {
				return f, p.bad("number option to `s' command may not be zero")
			}
			s.nth = int(min(n, 1<<30))
		case c == 'w':
			return f, p.substituteFile(s)
		case c == '}' || c == '#':
			p.back(c)
			return f, p.endOfCommand()
		case c == end || c == '\n' || c == ';':
			return f, nil
		case space(c):
		default:
			return f, p.bad("unknown option to `s'")
		}
	}
}

func (p *parser) substituteFile(s *substitution) error {
	at := p.pos
	name := p.fileName()
	switch {
	case name == "":
		p.pos = at
		return p.bad("missing filename in r/R/w/W commands")
	case p.o.sandbox:
		return p.bad("e/r/w commands disabled in sandbox mode")
	}
	var err error
	s.out, err = p.prog.open(p.c, name)
	return err
}

// parseReplacement reads the right side of s.
func parseReplacement(s string) []part {
	var parts []part
	var text bytes.Buffer
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: bytes.Clone(text.Bytes()), group: -1})
			text.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '&':
			flush()
			parts = append(parts, part{group: 0})
		case s[i] == '\\' && i+1 < len(s):
			i++
			c := s[i]
			if '0' <= c && c <= '9' {
				flush()
				parts = append(parts, part{group: int(c - '0')})
				continue
			}
			if at := strings.IndexByte("ULEul", c); at >= 0 {
				flush()
				modes := []caseMode{caseUpper, caseLower, caseEnd, caseNextUpper, caseNextLower}
				parts = append(parts, part{group: -1, mode: modes[at]})
				continue
			}
			if b, n := charEscape(s[i:]); n > 0 {
				text.WriteByte(b)
				i += n - 1
				continue
			}
			if c == 'n' {
				c = '\n'
			}
			text.WriteByte(c)
		default:
			text.WriteByte(s[i])
		}
	}
	flush()
	return parts
}

package sed

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// substitute is s.
func (m *machine) substitute(s *substitution) error {
	re, err := m.regex(s.re)
	if err != nil {
		return err
	}
	if s.maxGroup > re.Groups() {
		return fail(statusUsage, "-e expression #1, char 0: invalid reference \\%d on `s' command's RHS", s.maxGroup)
	}
	var out []byte
	text := m.pattern
	at, copied, count, ended, done := 0, 0, 0, -1, false
	var state caseState
	for at <= len(text) {
		loc, err := re.Find(text, at, 0)
		if err != nil {
			return err
		}
		if loc == nil {
			break
		}
		start, end := loc[0], loc[1]
		if start == end && start == ended {
			// an empty match right after the last one is none
		} else if count++; count >= max(s.nth, 1) {
			out = append(out, text[copied:start]...)
			out = state.replace(out, s.parts, text, loc)
			copied, done = end, true
			if err := m.grow(len(out)); err != nil {
				return err
			}
		}
		ended = end
		if done && !s.global {
			break
		}
		if at = end; start == end {
			if at >= len(text) {
				break
			}
			p := parser{o: m.o}
			at += p.width(string(text[at:min(len(text), at+utf8.UTFMax)]))
		}
		if err := m.step(); err != nil {
			return err
		}
	}
	if !done {
		return nil
	}
	m.replaced = true
	m.pattern = append(out, text[copied:]...)
	return m.substituted(s)
}

// substituted does what the flags of s ask for.
func (m *machine) substituted(s *substitution) error {
	if s.eval {
		b, err := m.shell(string(m.pattern))
		if err != nil {
			return err
		}
		m.pattern = bytes.TrimSuffix(b, []byte{m.delimiter()})
	}
	if s.printing > 0 {
		if err := m.out.line(m.pattern, m.delimiter(), m.chomped); err != nil {
			return err
		}
	}
	if s.out != nil {
		return s.out.line(m.pattern, m.delimiter(), m.chomped)
	}
	return nil
}

// caseState is what \U, \L, \u and \l have asked for so far.
type caseState struct{ mode, once caseMode }

// replace appends a replacement.
func (c *caseState) replace(out []byte, parts []part, text []byte, loc []int) []byte {
	*c = caseState{}
	for _, p := range parts {
		switch p.mode {
		case caseUpper, caseLower:
			c.mode = p.mode
			continue
		case caseEnd:
			c.mode = caseNone
			continue
		case caseNextUpper, caseNextLower:
			c.once = p.mode
			continue
		}
		b := p.text
		if p.group >= 0 {
			b = nil
			if from := loc[2*p.group]; from >= 0 {
				b = text[from:loc[2*p.group+1]]
			}
		}
		out = c.append(out, b)
	}
	return out
}

func (c *caseState) append(out, b []byte) []byte {
	for len(b) > 0 && (c.mode != caseNone || c.once != caseNone) {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, b[0])
		case c.once == caseNextUpper, c.once == caseNone && c.mode == caseUpper:
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
		c.once = caseNone
		b = b[n:]
	}
	return append(out, b...)
}

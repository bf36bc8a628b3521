package grep

import (
	"errors"
	"unicode"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

// matcher finds the patterns in a line.
type matcher struct {
	re         *regex.Regexp
	line, word bool // whole lines, whole words; Perl's are in the expression
	bytes      bool
	needs      []byte
	warnings   []string
}

func newMatcher(c *command.Call, o *options) (*matcher, error) {
	m := &matcher{line: o.line, word: o.word && !o.line, bytes: o.byteLocale}
	patterns := o.patterns
	if o.syntax == regex.Perl && len(patterns) > 1 {
		return nil, errors.New("the -P option only supports a single pattern")
	}
	if o.syntax == regex.Perl && (o.line || o.word) {
		wrapped := make([]string, len(patterns))
		for i, p := range patterns {
			if o.line {
				wrapped[i] = "^(?:" + p + ")$"
			} else {
				wrapped[i] = `(?<!\w)(?:` + p + `)(?!\w)`
			}
		}
		patterns, m.line, m.word = wrapped, false, false
	}
	var err error
	m.re, err = regex.CompileAny(patterns, regex.Options{
		Syntax: o.syntax, Fold: o.fold, Bytes: o.byteLocale, Steps: c.Budget.Steps,
	})
	if err != nil {
		return nil, err
	}
	m.needs, m.warnings = m.re.Needs(), m.re.Warnings()
	return m, nil
}

// next finds the first match that begins at or after at; start is -1 when
// there is none.
func (m *matcher) next(line []byte, at int) (start, end int, err error) {
	for {
		start, end, err = m.re.Span(line, at, 0)
		switch {
		case err != nil || start < 0:
			return -1, -1, err
		case m.line:
			if at == 0 && start == 0 && end == len(line) {
				return start, end, nil
			}
			return -1, -1, nil
		case !m.word:
			return start, end, nil
		}
		if end, err = m.wordAt(line, start, end); err != nil || end >= 0 {
			return start, end, err
		}
		if start >= len(line) {
			return -1, -1, nil
		}
		at = start + m.width(line[start:])
	}
}

// wordAt is the longest match from start that is a word by itself: what grep
// -w looks for. -1: none.
func (m *matcher) wordAt(line []byte, start, end int) (int, error) {
	if m.wordBefore(line[:start]) {
		return -1, nil
	}
	for m.wordAfter(line[end:]) {
		if end <= start {
			return -1, nil
		}
		_, n := utf8.DecodeLastRune(line[start:end])
		from, to, err := m.re.Span(line[:end-n], start, 0)
		if err != nil || from != start {
			return -1, err
		}
		end = to
	}
	return end, nil
}

func (m *matcher) wordBefore(b []byte) bool {
	r, n := utf8.DecodeLastRune(b)
	return n > 0 && m.wordRune(r, n)
}

func (m *matcher) wordAfter(b []byte) bool {
	r, n := utf8.DecodeRune(b)
	return n > 0 && m.wordRune(r, n)
}

func (m *matcher) wordRune(r rune, n int) bool {
	if r == utf8.RuneError && n == 1 || m.bytes && r >= utf8.RuneSelf {
		return false
	}
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func (m *matcher) width(b []byte) int {
	if m.bytes {
		return 1
	}
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}

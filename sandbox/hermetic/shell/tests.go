package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/sandbox/hermetic/shell/pattern"
)

// maxTree bounds recursion over lists and expressions.
const maxTree = 20_000

// tester evaluates [[ ]].
type tester struct {
	sh     *shell
	failed bool
	depth  int
	status int
	trace  *strings.Builder
}

func (t *tester) expr(x syntax.TestExpr) bool {
	if t.depth++; t.depth > maxTree {
		t.sh.tooNested()
	}
	defer func() { t.depth-- }()
	switch x := x.(type) {
	case *syntax.Word:
		s := t.sh.str(x)
		t.note("-n " + quoteIfNeeded(s))
		return s != ""
	case *syntax.ParenTest:
		return t.expr(x.X)
	case *syntax.UnaryTest:
		return t.unary(x)
	case *syntax.BinaryTest:
		return t.binary(x)
	}
	return false
}

func (t *tester) note(s string) {
	if t.trace != nil {
		if t.trace.Len() > 0 {
			t.trace.WriteByte(' ')
		}
		t.trace.WriteString(s)
	}
}

func (t *tester) unary(x *syntax.UnaryTest) bool {
	if x.Op == syntax.TsNot {
		t.note("!")
		return !t.expr(x.X)
	}
	w, ok := x.X.(*syntax.Word)
	if !ok {
		return false
	}
	s := t.sh.str(w)
	t.note(x.Op.String() + " " + quoteIfNeeded(s))
	return t.sh.testUnary(x.Op.String(), s)
}

func (t *tester) binary(x *syntax.BinaryTest) bool {
	switch x.Op {
	case syntax.AndTest:
		return t.expr(x.X) && t.expr(x.Y)
	case syntax.OrTest:
		return t.expr(x.X) || t.expr(x.Y)
	}
	a, _ := x.X.(*syntax.Word)
	b, _ := x.Y.(*syntax.Word)
	if a == nil || b == nil {
		return false
	}
	sh := t.sh
	left := sh.str(a)
	switch x.Op {
	case syntax.TsReMatch:
		return t.regex(left, b)
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		pat := sh.patternOf(b)
		t.note(quoteIfNeeded(left) + " " + x.Op.String() + " " + pat)
		return sh.compile(pat, sh.shopts["nocasematch"]).Match(left) == (x.Op != syntax.TsNoMatch)
	}
	right := sh.str(b)
	t.note(quoteIfNeeded(left) + " " + x.Op.String() + " " + quoteIfNeeded(right))
	switch x.Op {
	case syntax.TsBefore:
		return left < right
	case syntax.TsAfter:
		return left > right
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		return sh.testFiles(x.Op.String(), left, right)
	}
	m, ok := sh.arithTry("[[: ", left)
	if !ok {
		t.failed, t.status = true, 1
		return false
	}
	n, ok := sh.arithTry("[[: ", right)
	if !ok {
		t.failed, t.status = true, 1
		return false
	}
	return compareInts(x.Op.String(), m, n)
}

func compareInts(op string, m, n int64) bool {
	switch op {
	case "-eq":
		return m == n
	case "-ne":
		return m != n
	case "-lt":
		return m < n
	case "-le":
		return m <= n
	case "-gt":
		return m > n
	}
	return m >= n
}

// regex is =~: a POSIX extended regular expression, what was quoted standing
// for itself.
func (t *tester) regex(left string, w *syntax.Word) bool {
	sh := t.sh
	e := sh.expander(false)
	e.word(w)
	f := &e.cur
	s := f.text.String()
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if f.quoted != nil && f.quoted[i] {
			if strings.IndexByte(`\.+*?()|[]{}^$`, s[i]) >= 0 {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(s[i])
	}
	t.note(quoteIfNeeded(left) + " =~ " + b.String())
	re, err := compileERE(b.String(), sh.shopts["nocasematch"])
	if err != nil {
		t.failed = true
		return false
	}
	m := re.FindStringSubmatch(left)
	if m == nil {
		sh.setList("BASH_REMATCH", nil)
		return false
	}
	sh.setList("BASH_REMATCH", m)
	return true
}

// compileERE reads an extended regular expression in Go's syntax: the longest
// of the leftmost matches.
func compileERE(text string, fold bool) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("(?s")
	if fold {
		b.WriteByte('i')
	}
	b.WriteByte(')')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[':
			j := bracketEnd(text, i)
			if j < 0 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString(bracketToGo(text[i:j]))
			i = j - 1
		case '\\':
			if i+1 < len(text) {
				i++
				switch text[i] {
				case '<', '>':
					b.WriteString(`\b`)
				default:
					if strings.IndexByte("wWsSbBdD", text[i]) >= 0 || strings.IndexByte(`\.+*?()|[]{}^$`, text[i]) >= 0 {
						b.WriteByte('\\')
					}
					b.WriteByte(text[i])
				}
			}
		case '*', '+', '?':
			b.WriteByte(c)
			for i+1 < len(text) && strings.IndexByte("*+?", text[i+1]) >= 0 {
				i++
			}
		case '(':
			b.WriteByte('(')
			if i+1 < len(text) && text[i+1] == '?' {
				b.WriteString(`\`)
			}
		case '{':
			if i+1 < len(text) && (text[i+1] >= '0' && text[i+1] <= '9' || text[i+1] == ',') {
				b.WriteByte('{')
				if text[i+1] == ',' {
					b.WriteByte('0')
				}
			} else {
				b.WriteString(`\{`)
			}
		default:
			b.WriteByte(c)
		}
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, err
	}
	re.Longest()
	return re, nil
}

func bracketEnd(s string, at int) int {
	i := at + 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) {
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			if k := strings.Index(s[i+2:], string(s[i+1])+"]"); k >= 0 {
				i += k + 4
				continue
			}
		}
		if s[i] == ']' {
			return i + 1
		}
		i++
	}
	return -1
}

// bracketToGo is a bracket expression with Go's escapes: POSIX has none.
func bracketToGo(s string) string {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; i < len(s)-1; first = false {
		c := s[i]
		switch {
		case c == '[' && i+1 < len(s) && s[i+1] == ':':
			k := strings.Index(s[i:], ":]")
			if pattern.Named(s[i+2:i+max(k, 2)]) != nil {
				b.WriteString(s[i : i+k+2])
			}
			i += max(k, 1) + 2
			continue
		case c == '\\' || c == '[' || c == ']' && first || c == '^' || c == '&' || c == '~':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
		i++
	}
	b.WriteByte(']')
	return b.String()
}

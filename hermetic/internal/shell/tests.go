package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
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

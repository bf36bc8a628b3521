package test

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// expression evaluates what is between [[ and ]].
type expression struct {
	sh     *state.Shell
	failed bool
	depth  int
	status int
	trace  *strings.Builder
}

// Evaluate evaluates what is between [[ and ]], and reports the exit status:
// 2 if it is not a valid expression.
func Evaluate(sh *state.Shell, x syntax.TestExpr) int {
	t := expression{sh: sh}
	if sh.Options.On(options.XTrace) {
		t.trace = &strings.Builder{}
	}
	ok := t.eval(x)
	if t.trace != nil {
		expand.Trace(sh, "[[ "+t.trace.String()+" ]]")
	}
	switch {
	case t.failed && t.status != 0:
		return t.status
	case t.failed:
		return 2
	case ok:
		return 0
	}
	return 1
}

// eval evaluates one node.
func (t *expression) eval(x syntax.TestExpr) bool {
	if t.depth++; t.depth > state.MaxTree {
		t.sh.TooNested()
	}
	defer func() { t.depth-- }()
	switch x := x.(type) {
	case *syntax.Word:
		s := expand.String(t.sh, x)
		t.note("-n " + quote.IfNeeded(s))
		return s != ""
	case *syntax.ParenTest:
		return t.eval(x.X)
	case *syntax.UnaryTest:
		return t.unary(x)
	case *syntax.BinaryTest:
		return t.binary(x)
	}
	return false
}

// note adds to the line that set -x writes.
func (t *expression) note(s string) {
	if t.trace != nil {
		if t.trace.Len() > 0 {
			t.trace.WriteByte(' ')
		}
		t.trace.WriteString(s)
	}
}

func (t *expression) unary(x *syntax.UnaryTest) bool {
	if x.Op == syntax.TsNot {
		t.note("!")
		return !t.eval(x.X)
	}
	w, ok := x.X.(*syntax.Word)
	if !ok {
		return false
	}
	s := expand.String(t.sh, w)
	t.note(x.Op.String() + " " + quote.IfNeeded(s))
	return unary(t.sh, x.Op.String(), s)
}

func (t *expression) binary(x *syntax.BinaryTest) bool {
	switch x.Op {
	case syntax.AndTest:
		return t.eval(x.X) && t.eval(x.Y)
	case syntax.OrTest:
		return t.eval(x.X) || t.eval(x.Y)
	}
	a, _ := x.X.(*syntax.Word)
	b, _ := x.Y.(*syntax.Word)
	if a == nil || b == nil {
		return false
	}
	sh := t.sh
	left := expand.String(sh, a)
	switch x.Op {
	case syntax.TsReMatch:
		return t.regex(left, b)
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		pat := expand.Pattern(sh, b)
		t.note(quote.IfNeeded(left) + " " + x.Op.String() + " " + pat)
		return expand.Compile(sh, pat, sh.Options.Shopt["nocasematch"]).Match(left) == (x.Op != syntax.TsNoMatch)
	}
	right := expand.String(sh, b)
	t.note(quote.IfNeeded(left) + " " + x.Op.String() + " " + quote.IfNeeded(right))
	switch x.Op {
	case syntax.TsBefore:
		return left < right
	case syntax.TsAfter:
		return left > right
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		return files(sh, x.Op.String(), left, right)
	}
	m, ok := expand.TryArith(sh, "[[: ", left)
	if !ok {
		t.failed, t.status = true, 1
		return false
	}
	n, ok := expand.TryArith(sh, "[[: ", right)
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

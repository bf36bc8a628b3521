package expr

import (
	"fmt"
	"io/fs"
	"math/big"
	"strings"
	"time"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// tester evaluates the operands of test.
type tester struct {
	*gnu.Work
	args []string
	at   int
	err  error
}

func testBracket(w *gnu.Work) {
	args := w.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		w.Options("EXPRESSION ]", "")
		return
	}
	if len(args) == 0 || args[len(args)-1] != "]" {
		w.Die(2, "missing %s", gnu.Quote("]"))
		return
	}
	runTest(w, args[:len(args)-1])
}

func test(w *gnu.Work) { runTest(w, w.Args[1:]) }

func runTest(w *gnu.Work, args []string) {
	t := &tester{Work: w, args: args}
	v := len(args) > 0 && t.some(len(args))
	if t.err == nil && t.at < len(args) && len(args) > 0 {
		t.fail("extra argument %s", gnu.Quote(args[t.at]))
	}
	switch {
	case t.err != nil:
		w.Die(2, "%v", t.err)
	case !v:
		w.Status = 1
	}
}

func (t *tester) fail(format string, args ...any) bool {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
	return false
}

// some evaluates n operands by the rules of POSIX for so many.
func (t *tester) some(n int) bool {
	switch n {
	case 1:
		t.at++
		return t.args[t.at-1] != ""
	case 2:
		return t.two()
	case 3:
		return t.three()
	case 4:
		if t.args[t.at] == "!" {
			t.at++
			return !t.three()
		}
		if t.args[t.at] == "(" && t.args[t.at+3] == ")" {
			t.at++
			v := t.two()
			t.at++
			return v
		}
	}
	return t.or()
}

func (t *tester) two() bool {
	a := t.args[t.at]
	switch {
	case a == "!":
		t.at += 2
		return t.args[t.at-1] == ""
	case len(a) == 2 && a[0] == '-':
		if isUnary(a) {
			return t.unary()
		}
		return t.fail("%s: unary operator expected", gnu.Quote(a))
	}
	return t.beyond()
}

func (t *tester) three() bool {
	a, b := t.args[t.at], t.args[t.at+1]
	switch {
	case isBinary(b):
		return t.binary(false)
	case a == "!":
		t.at++
		return !t.two()
	case a == "(" && t.args[t.at+2] == ")":
		t.at += 3
		return b != ""
	case b == "-a" || b == "-o":
		return t.or()
	}
	return t.fail("%s: binary operator expected", gnu.Quote(b))
}

func (t *tester) or() bool {
	v := t.and()
	for t.err == nil && t.at < len(t.args) && t.args[t.at] == "-o" {
		t.at++
		r := t.and()
		v = v || r
	}
	return v
}

func (t *tester) and() bool {
	v := t.term()
	for t.err == nil && t.at < len(t.args) && t.args[t.at] == "-a" {
		t.at++
		r := t.term()
		v = v && r
	}
	return v
}

func (t *tester) beyond() bool {
	return t.fail("missing argument after %s", gnu.Quote(t.args[len(t.args)-1]))
}

func (t *tester) term() bool {
	negate := false
	for t.at < len(t.args) && t.args[t.at] == "!" {
		t.at++
		negate = !negate
	}
	if t.at >= len(t.args) {
		return t.beyond()
	}
	left := len(t.args) - t.at
	a := t.args[t.at]
	var v bool
	switch {
	case a == "(":
		v = t.group()
	case left >= 4 && a == "-l" && isBinary(t.args[t.at+2]):
		v = t.binary(true)
	case left >= 3 && isBinary(t.args[t.at+1]):
		v = t.binary(false)
	case len(a) == 2 && a[0] == '-':
		if !isUnary(a) {
			return t.fail("%s: unary operator expected", gnu.Quote(a))
		}
		if left < 2 {
			return t.beyond()
		}
		v = t.unary()
	default:
		t.at++
		v = a != ""
	}
	return v != negate
}

// group is what stands in parentheses.
func (t *tester) group() bool {
	t.at++
	if t.at >= len(t.args) {
		return t.beyond()
	}
	n := 1
	for t.at+n < len(t.args) && t.args[t.at+n] != ")" {
		if n == 4 {
			n = len(t.args) - t.at
			break
		}
		n++
	}
	v := t.inGroup(n)
	if t.err != nil {
		return false
	}
	if t.at >= len(t.args) {
		return t.fail("%s expected", gnu.Quote(")"))
	}
	if t.args[t.at] != ")" {
		return t.fail("%s expected, found %s", gnu.Quote(")"), t.args[t.at])
	}
	t.at++
	return v
}

func (t *tester) inGroup(n int) bool {
	if n > 4 || t.at+n > len(t.args) {
		return t.or()
	}
	return t.some(n)
}

func isUnary(op string) bool {
	return len(op) == 2 && strings.IndexByte("bcdefghkLnOGprsStuwxzN", op[1]) >= 0
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *tester) unary() bool {
	op, arg := t.args[t.at][1], t.args[t.at+1]
	t.at += 2
	switch op {
	case 'z':
		return arg == ""
	case 'n':
		return arg != ""
	case 't':
		return t.terminal(arg)
	case 'r', 'w', 'x':
		return t.FS.Access(t.Path(arg), map[byte]uint32{'r': 4, 'w': 2, 'x': 1}[op]) == nil
	case 'h', 'L':
		fi, err := t.FS.Lstat(t.Path(arg))
		return err == nil && fi.Mode()&fs.ModeSymlink != 0
	}
	fi, err := t.FS.Stat(t.Path(arg))
	if err != nil || arg == "" {
		return false
	}
	m := fi.Mode()
	switch op {
	case 'b':
		return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0
	case 'c':
		return m&fs.ModeCharDevice != 0
	case 'd':
		return m.IsDir()
	case 'f':
		return m.IsRegular()
	case 'g':
		return m&fs.ModeSetgid != 0
	case 'k':
		return m&fs.ModeSticky != 0
	case 'u':
		return m&fs.ModeSetuid != 0
	case 'p':
		return m&fs.ModeNamedPipe != 0
	case 'S':
		return m&fs.ModeSocket != 0
	case 's':
		return fi.Size() > 0
	case 'N':
		return fi.ModTime().After(inode.Of(fi).Atime)
	}
	return true // e, O and G: everything belongs to this user
}

func (t *tester) number(s string) *big.Int {
	trimmed := strings.TrimPrefix(strings.Trim(s, " \t\n"), "+")
	if n, ok := integer(trimmed); ok {
		return n
	}
	t.fail("invalid integer %s", gnu.Quote(s))
	return new(big.Int)
}

func (t *tester) binary(length bool) bool {
	if length {
		t.at++
	}
	a, op, b := t.args[t.at], t.args[t.at+1], t.args[t.at+2]
	t.at += 3
	switch op {
	case "=", "==":
		return a == b
	case "!=":
		return a != b
	case "-nt", "-ot", "-ef":
		return t.files(a, op, b)
	}
	var left *big.Int
	if length {
		left = big.NewInt(int64(len(a)))
	} else {
		left = t.number(a)
	}
	right := new(big.Int)
	if t.at-3+2 < len(t.args) && b == "-l" && t.at < len(t.args) {
		right.SetInt64(int64(len(t.args[t.at])))
		t.at++
	} else {
		right = t.number(b)
	}
	order := left.Cmp(right)
	return map[string]bool{
		"-eq": order == 0, "-ne": order != 0, "-lt": order < 0, "-le": order <= 0, "-gt": order > 0, "-ge": order >= 0,
	}[op]
}

func (t *tester) files(a, op, b string) bool {
	x, errX := t.FS.Stat(t.Path(a))
	y, errY := t.FS.Stat(t.Path(b))
	var mx, my time.Time
	if errX == nil {
		mx = x.ModTime()
	}
	if errY == nil {
		my = y.ModTime()
	}
	switch op {
	case "-nt":
		return errX == nil && (errY != nil || mx.After(my))
	case "-ot":
		return errY == nil && (errX != nil || mx.Before(my))
	}
	return errX == nil && errY == nil && inode.Same(x, y)
}

// terminal is -t: the shell knows which of the streams are terminals.
func (t *tester) terminal(fd string) bool {
	n := t.number(fd)
	for i, stream := range []any{t.Stdin, t.Stdout, t.Stderr} {
		if n.IsInt64() && n.Int64() == int64(i) {
			return isTerminal(stream)
		}
	}
	return false
}

func isTerminal(stream any) bool {
	s, ok := stream.(interface{ Terminal() bool })
	return ok && s.Terminal()
}

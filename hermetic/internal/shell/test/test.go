// Package test evaluates conditions: the builtins test and [, and what is
// between [[ and ]].
//
//	status := test.Run(sh, []string{"[", "-f", name, "]"})
//	status := test.Evaluate(sh, clause.X) // [[ ... ]]
//
// Both report 0 for true, 1 for false and 2 for a mistake.
package test

import (
	"strings"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
)

// arguments evaluates the arguments of test and [.
type arguments struct {
	sh   *state.Shell
	name string
	args []string
	at   int
	bad  string
}

// Run is the builtins test and [.
func Run(sh *state.Shell, args []string) int {
	t := &arguments{sh: sh, name: args[0], args: args[1:]}
	if t.name == "[" {
		if len(t.args) == 0 || t.args[len(t.args)-1] != "]" {
			sh.Errorf("[: missing `]'")
			return 2
		}
		t.args = t.args[:len(t.args)-1]
	}
	ok := t.count(t.args)
	switch {
	case t.bad != "":
		sh.Errorf("%s: %s", t.name, t.bad)
		return 2
	case ok:
		return 0
	}
	return 1
}

// fail keeps the first mistake.
func (t *arguments) fail(s string) bool {
	if t.bad == "" {
		t.bad = s
	}
	return false
}

// count applies POSIX's rule: the number of arguments decides what they mean.
func (t *arguments) count(a []string) bool {
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
		if isUnary(a[0]) {
			return unary(t.sh, a[0], a[1])
		}
		return t.fail(a[0] + ": unary operator expected")
	case 3:
		switch {
		case isBinary(a[1]):
			return t.binary(a[0], a[1], a[2])
		case a[1] == "-a":
			return a[0] != "" && a[2] != ""
		case a[1] == "-o":
			return a[0] != "" || a[2] != ""
		case a[0] == "!":
			return !t.count(a[1:])
		case a[0] == "(" && a[2] == ")":
			return t.count(a[1:2])
		}
		return t.fail(a[1] + ": binary operator expected")
	case 4:
		switch {
		case a[0] == "!":
			return !t.count(a[1:])
		case a[0] == "(" && a[3] == ")":
			return t.count(a[1:3])
		}
	}
	t.args, t.at = a, 0
	ok := t.or()
	if t.bad == "" && t.at < len(t.args) {
		return t.fail("too many arguments")
	}
	return ok
}

func isUnary(s string) bool {
	return len(s) == 2 && s[0] == '-' && strings.IndexByte("abcdefghknoprstuvwxzGLNORS", s[1]) >= 0
}

func isBinary(s string) bool {
	switch s {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *arguments) or() bool {
	ok := t.and()
	for t.at < len(t.args) && t.args[t.at] == "-o" {
		t.at++
		more := t.and()
		ok = ok || more
	}
	return ok
}

func (t *arguments) and() bool {
	ok := t.term(0)
	for t.at < len(t.args) && t.args[t.at] == "-a" {
		t.at++
		more := t.term(0)
		ok = ok && more
	}
	return ok
}

func (t *arguments) term(depth int) bool {
	if t.bad != "" || t.at >= len(t.args) || depth > 1000 {
		return t.fail("argument expected")
	}
	a := t.args[t.at]
	left := len(t.args) - t.at
	switch {
	case a == "!":
		t.at++
		return !t.term(depth + 1)
	case left >= 3 && isBinary(t.args[t.at+1]):
		t.at += 3
		return t.binary(a, t.args[t.at-2], t.args[t.at-1])
	case a == "(":
		t.at++
		if depth > 100 {
			return t.fail("too many arguments")
		}
		ok := t.or()
		if t.at >= len(t.args) || t.args[t.at] != ")" {
			return t.fail("`)' expected")
		}
		t.at++
		return ok
	case left >= 2 && isUnary(a):
		t.at += 2
		return unary(t.sh, a, t.args[t.at-1])
	}
	t.at++
	return a != ""
}

func (t *arguments) binary(a, op, b string) bool {
	switch op {
	case "=", "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case ">":
		return a > b
	case "-nt", "-ot", "-ef":
		return files(t.sh, op, a, b)
	}
	m, ok := number.Parse(a)
	if !ok {
		return t.fail(a + ": integer expression expected")
	}
	n, ok := number.Parse(b)
	if !ok {
		return t.fail(b + ": integer expression expected")
	}
	return compareInts(op, m, n)
}

// Package arith evaluates shell arithmetic as bash does: 64-bit integers that
// wrap, C's operators and **, numbers of any base to 64, names that are
// evaluated in turn.
package arith

import (
	"errors"
	"fmt"
	"strings"
)

// Vars gives an expression its variables. index is the text between the
// brackets; indexed reports whether there are brackets.
type Vars interface {
	Get(name, index string, indexed bool) (string, error)
	Set(name, index string, indexed bool, value int64) error
}

// maxDepth bounds chains of names whose values are expressions with names.
const maxDepth = 1024

// maxNesting bounds parentheses and signs in one expression.
const maxNesting = 2000

// Error is a mistake in an expression, in bash's words.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Eval evaluates expr. An empty expression is 0.
func Eval(expr string, v Vars) (int64, error) { return eval(expr, v, 0) }

func eval(expr string, v Vars, depth int) (n int64, err error) {
	if depth > maxDepth {
		return 0, &Error{fmt.Sprintf("%s: expression recursion level exceeded (error token is \"%s\")", expr, expr)}
	}
	if n, ok := plain(expr); ok {
		return n, nil
	}
	p := &parser{text: expr, vars: v, depth: depth}
	defer func() {
		if x := recover(); x != nil {
			f, ok := x.(failure)
			if !ok {
				panic(x)
			}
			n, err = 0, f.err
		}
	}()
	p.next()
	if p.tok == end {
		return 0, nil
	}
	n = p.comma()
	if p.tok != end {
		p.fail("syntax error in expression", p.lastAt)
	}
	return n, nil
}

// plain reads a decimal number, the common case.
func plain(s string) (int64, bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, s == ""
	}
	var n int64
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// failure carries an error up the recursion. It never leaves the package.
type failure struct{ err error }

func (p *parser) fail(what string, at int) {
	expr := strings.TrimLeft(p.text, " \t\n")
	panic(failure{&Error{fmt.Sprintf("%s: %s (error token is \"%s\")", expr, what, p.text[min(at, len(p.text)):])}})
}

func (p *parser) must(err error) {
	var e *Error
	if errors.As(err, &e) || err != nil {
		panic(failure{err})
	}
}

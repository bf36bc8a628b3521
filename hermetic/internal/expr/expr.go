package expr

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
)

// exprCall evaluates the operands of expr.
type exprCall struct {
	*gnu.Work
	args  []string
	at    int
	depth int
}

// exprFault is what ends an evaluation.
type exprFault struct {
	status int
	text   string
}

func (e *exprFault) Error() string { return e.text }

func exprError(format string, args ...any) error {
	return &exprFault{2, fmt.Sprintf(format, args...)}
}

// Bounds of one expression: its parentheses, and the digits of its numbers.
const (
	exprDepth  = 500
	exprDigits = 1 << 16
)

func expr(w *gnu.Work) {
	w.Usage = 2
	args := w.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		w.Options("EXPRESSION", "")
		return
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		w.TryHelp("missing operand")
		return
	}
	e := &exprCall{Work: w, args: args}
	v, err := e.or(true)
	if err == nil && e.at < len(args) {
		err = exprError("syntax error: unexpected argument %s", gnu.Quote(args[e.at]))
	}
	if err != nil {
		var f *exprFault
		status := 3
		if errors.As(err, &f) {
			status = f.status
		}
		w.Die(status, "%v", err)
		return
	}
	if null(v) {
		w.Status = 1
	}
	_, _ = w.Out.WriteString(v + "\n")
}

func integer(s string) (*big.Int, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > exprDigits {
		return nil, false
	}
	return new(big.Int).SetString(s, 10)
}

// null says whether expr's status for v is 1.
func null(v string) bool {
	digits := strings.TrimPrefix(v, "-")
	return v == "" || digits != "" && strings.Trim(digits, "0") == ""
}

// next takes the operand if it is one of ops.
func (e *exprCall) next(ops ...string) string {
	if e.at < len(e.args) {
		for _, op := range ops {
			if e.args[e.at] == op {
				e.at++
				return op
			}
		}
	}
	return ""
}

func (e *exprCall) missing() error {
	return exprError("syntax error: missing argument after %s", gnu.Quote(e.args[e.at-1]))
}

func (e *exprCall) or(evaluate bool) (string, error) {
	l, err := e.and(evaluate)
	for err == nil && e.next("|") != "" {
		var r string
		if r, err = e.and(evaluate && null(l)); err != nil {
			break
		}
		if null(l) {
			if l = r; null(l) {
				l = "0"
			}
		}
	}
	return l, err
}

func (e *exprCall) and(evaluate bool) (string, error) {
	l, err := e.compare(evaluate)
	for err == nil && e.next("&") != "" {
		var r string
		if r, err = e.compare(evaluate && !null(l)); err != nil {
			break
		}
		if null(l) || null(r) {
			l = "0"
		}
	}
	return l, err
}

func (e *exprCall) compare(evaluate bool) (string, error) {
	l, err := e.sum(evaluate)
	for err == nil {
		op := e.next("<", "<=", "=", "==", "!=", ">=", ">")
		if op == "" {
			break
		}
		var r string
		if r, err = e.sum(evaluate); err != nil {
			break
		}
		order := strings.Compare(l, r)
		if a, ok := integer(l); ok {
			if b, ok := integer(r); ok {
				order = a.Cmp(b)
			}
		}
		l = "0"
		if map[string]bool{
			"<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0,
			"!=": order != 0, ">=": order >= 0, ">": order > 0,
		}[op] {
			l = "1"
		}
	}
	return l, err
}

func (e *exprCall) sum(evaluate bool) (string, error) {
	return e.arithmetic(evaluate, e.product, "+", "-")
}

func (e *exprCall) product(evaluate bool) (string, error) {
	return e.arithmetic(evaluate, e.match, "*", "/", "%")
}

func (e *exprCall) arithmetic(evaluate bool, operand func(bool) (string, error), ops ...string) (string, error) {
	l, err := operand(evaluate)
	for err == nil {
		op := e.next(ops...)
		if op == "" {
			break
		}
		var r string
		if r, err = operand(evaluate); err != nil {
			break
		}
		if evaluate {
			l, err = e.calculate(l, op, r)
		}
	}
	return l, err
}

func (e *exprCall) calculate(l, op, r string) (string, error) {
	a, ok1 := integer(l)
	b, ok2 := integer(r)
	if !ok1 || !ok2 {
		return "", exprError("non-integer argument")
	}
	if err := e.Budget.Steps(int64(1 + len(l)*len(r)/64)); err != nil {
		return "", err
	}
	switch op {
	case "+":
		a.Add(a, b)
	case "-":
		a.Sub(a, b)
	case "*":
		a.Mul(a, b)
	default:
		if b.Sign() == 0 {
			return "", exprError("division by zero")
		}
		if op == "/" {
			a.Quo(a, b)
		} else {
			a.Rem(a, b)
		}
	}
	return a.String(), nil
}

func (e *exprCall) match(evaluate bool) (string, error) {
	l, err := e.function(evaluate)
	for err == nil && e.next(":") != "" {
		var r string
		if r, err = e.function(evaluate); err != nil {
			break
		}
		if evaluate {
			l, err = e.colon(l, r)
		}
	}
	return l, err
}

// colon matches text from its beginning against a basic regular expression.
func (e *exprCall) colon(text, pattern string) (string, error) {
	re, err := regex.Compile(pattern, regex.Options{Syntax: regex.Basic, Steps: e.Budget.Steps})
	if err != nil {
		return "", exprError("%v", err)
	}
	loc, err := re.Find([]byte(text), 0, 0)
	found := err == nil && loc != nil && loc[0] == 0
	if err != nil && e.Budget.Cause() != nil {
		return "", err
	}
	switch {
	case re.Groups() > 0 && (!found || loc[2] < 0):
		return "", nil
	case re.Groups() > 0:
		return text[loc[2]:loc[3]], nil
	case !found:
		return "0", nil
	}
	return fmt.Sprint(utf8.RuneCountInString(text[:loc[1]])), nil
}

func (e *exprCall) function(evaluate bool) (string, error) {
	if e.at == len(e.args) {
		return "", e.missing()
	}
	counts := map[string]int{"length": 1, "match": 2, "index": 2, "substr": 3}
	switch op := e.next("+", "length", "match", "index", "substr"); op {
	case "":
		return e.primary(evaluate)
	case "+":
		if e.at == len(e.args) {
			return "", e.missing()
		}
		e.at++
		return e.args[e.at-1], nil
	default:
		var v []string
		for range counts[op] {
			if e.at == len(e.args) {
				return "", e.missing()
			}
			s, err := e.nested(func() (string, error) { return e.function(evaluate) })
			if err != nil {
				return "", err
			}
			v = append(v, s)
		}
		if op == "match" {
			if !evaluate {
				return "", nil
			}
			return e.colon(v[0], v[1])
		}
		return textFunction(op, v), nil
	}
}

func textFunction(op string, v []string) string {
	r := []rune(v[0])
	switch op {
	case "length":
		return fmt.Sprint(len(r))
	case "index":
		for i, c := range r {
			if strings.ContainsRune(v[1], c) {
				return fmt.Sprint(i + 1)
			}
		}
		return "0"
	}
	from, ok1 := integer(v[1])
	count, ok2 := integer(v[2])
	if !ok1 || !ok2 || from.Sign() <= 0 || count.Sign() <= 0 || from.Cmp(big.NewInt(int64(len(r)))) > 0 {
		return ""
	}
	r = r[from.Int64()-1:]
	if count.Cmp(big.NewInt(int64(len(r)))) < 0 {
		r = r[:count.Int64()]
	}
	return string(r)
}

// nested bounds how deep expressions lie in each other.
func (e *exprCall) nested(f func() (string, error)) (string, error) {
	if e.depth++; e.depth > exprDepth {
		return "", exprError("expression too deep")
	}
	defer func() { e.depth-- }()
	return f()
}

func (e *exprCall) primary(evaluate bool) (string, error) {
	if e.next(")") != "" {
		return "", exprError("syntax error: unexpected ')'")
	}
	if e.next("(") == "" {
		e.at++
		return e.args[e.at-1], nil
	}
	v, err := e.nested(func() (string, error) { return e.or(evaluate) })
	switch {
	case err != nil:
		return "", err
	case e.at == len(e.args):
		return "", exprError("syntax error: expecting ')' after %s", gnu.Quote(e.args[e.at-1]))
	case e.next(")") == "":
		return "", exprError("syntax error: expecting ')' instead of %s", gnu.Quote(e.args[e.at]))
	}
	return v, nil
}

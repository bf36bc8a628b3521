package find

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
)

// node is a part of the expression.
type node func(*visit) bool

var (
	errHelp    = errors.New("help")
	errVersion = errors.New("version")
)

// complaint is a mistake in find's own words, capitals and periods included.
type complaint string

func (c complaint) Error() string { return string(c) }

func complain(format string, args ...any) error { return complaint(fmt.Sprintf(format, args...)) }

// parser reads the expression.
type parser struct {
	*search
	args []string
	at   int
	last string // the predicate before
	deep int
}

// maxNesting bounds parentheses and negations.
const maxNesting = 500

func (p *parser) parse() (node, error) {
	if len(p.args) == 0 {
		return p.print(), nil
	}
	n, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.args) {
		if p.args[p.at] == ")" {
			return nil, complain("invalid expression; you have too many ')'")
		}
		return nil, p.stray()
	}
	if !p.acts {
		test, show := n, p.print()
		n = func(v *visit) bool { return test(v) && !p.quit && show(v) }
	}
	return n, nil
}

func (p *parser) stray() error {
	a := p.args[p.at]
	if _, err := p.FS.Lstat(p.Path(a)); err == nil && p.last != "" {
		p.Complain("paths must precede expression: `%s'", a)
		return complain("possible unquoted pattern after predicate `%s'?", p.last)
	}
	return complain("paths must precede expression: `%s'", a)
}

func (p *parser) peek() string {
	if p.at < len(p.args) {
		return p.args[p.at]
	}
	return ""
}

// list is expressions with commas between.
func (p *parser) list() (node, error) {
	n, err := p.or()
	for err == nil && p.peek() == "," {
		p.at++
		l := n
		var r node
		if r, err = p.operand(",", p.or); err == nil {
			n = func(v *visit) bool { l(v); return r(v) }
		}
	}
	return n, err
}

// operand reads what stands after an operator.
func (p *parser) operand(op string, f func() (node, error)) (node, error) {
	if p.at == len(p.args) {
		return nil, complain("expected an expression after '%s'", op)
	}
	return f()
}

func (p *parser) or() (node, error) {
	n, err := p.and()
	for err == nil && (p.peek() == "-o" || p.peek() == "-or") {
		op := p.peek()
		p.at++
		l := n
		var r node
		if r, err = p.operand(op, p.and); err == nil {
			n = func(v *visit) bool { return l(v) || !p.quit && r(v) }
		}
	}
	return n, err
}

func (p *parser) and() (node, error) {
	n, err := p.term()
	for err == nil && p.at < len(p.args) {
		switch a := p.peek(); {
		case a == "-a" || a == "-and":
			p.at++
			if p.at == len(p.args) {
				return nil, complain("expected an expression after '%s'", a)
			}
		case a == "-o" || a == "-or" || a == "," || a == ")":
			return n, nil
		case !expression(a, false):
			return nil, p.stray()
		}
		l := n
		var r node
		if r, err = p.term(); err == nil {
			n = func(v *visit) bool { return l(v) && !p.quit && r(v) }
		}
	}
	return n, err
}

func (p *parser) term() (node, error) {
	if p.deep++; p.deep > maxNesting {
		return nil, complain("invalid expression; too deep")
	}
	defer func() { p.deep-- }()
	a := p.peek()
	switch a {
	case "!", "-not":
		p.at++
		n, err := p.operand(a, p.term)
		if err != nil {
			return nil, err
		}
		return func(v *visit) bool { return !n(v) }, nil
	case "(":
		return p.group()
	case ")":
		return nil, complain("invalid expression; you have too many ')'")
	case "-a", "-and", "-o", "-or", ",":
		return nil, complain("invalid expression; you have used a binary operator '%s' with nothing before it.", a)
	}
	if !expression(a, false) {
		return nil, p.stray()
	}
	p.at++
	n, err := p.predicate(a)
	p.last = a
	return n, err
}

func (p *parser) group() (node, error) {
	const open = "invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '('"
	p.at++
	if p.at == len(p.args) {
		return nil, complain(open)
	}
	if p.peek() == ")" {
		return nil, complain("invalid expression; empty parentheses are not allowed.")
	}
	n, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.peek() != ")" {
		return nil, complain("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
	}
	p.at++
	return n, nil
}

// value takes the argument of a predicate.
func (p *parser) value(name string) (string, error) {
	if p.at == len(p.args) {
		return "", complain("missing argument to `%s'", name)
	}
	p.at++
	return p.args[p.at-1], nil
}

func always(*visit) bool { return true }

// predicate reads one test, action or option.
func (p *parser) predicate(name string) (node, error) {
	switch name {
	case "-help", "--help":
		return nil, errHelp
	case "-version", "--version":
		return nil, errVersion
	}
	if n, ok := p.option(name); ok {
		return n, nil
	}
	for _, f := range []func(string) (node, bool, error){p.plain, p.numberOption, p.nameTest, p.numberTest, p.fileTest, p.action} {
		if n, ok, err := f(name); ok || err != nil {
			return n, err
		}
	}
	return nil, complain("unknown predicate `%s'", name)
}

// option is one that changes the walk and is always true.
func (p *parser) option(name string) (node, bool) {
	switch name {
	case "-depth", "-d":
		p.depth = true
	case "-xdev", "-mount":
		p.oneFS = true
	case "-daystart":
		p.daystart = true
	case "-follow":
		p.follow = 'L'
	case "-noleaf", "-warn", "-nowarn", "-ignore_readdir_race", "-noignore_readdir_race":
	default:
		return nil, false
	}
	return always, true
}

func (p *parser) numberOption(name string) (node, bool, error) {
	switch name {
	case "-maxdepth", "-mindepth":
		v, err := p.value(name)
		if err != nil {
			return nil, true, err
		}
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return nil, true, complain("Expected a positive decimal integer argument to %s, but got %s", name, gnu.Quote(v))
		}
		if name == "-maxdepth" {
			p.max = int(n)
		} else {
			p.min = int(n)
		}
		return always, true, nil
	case "-regextype":
		v, err := p.value(name)
		if err != nil {
			return nil, true, err
		}
		return always, true, p.setSyntax(v)
	}
	return nil, false, nil
}

var syntaxes = []struct {
	name   string
	syntax regex.Syntax
}{
	{"findutils-default", regex.Emacs},
	{"ed", regex.Basic},
	{"emacs", regex.Emacs},
	{"gnu-awk", regex.Awk},
	{"grep", regex.GrepBasic},
	{"posix-awk", regex.Awk},
	{"awk", regex.Awk},
	{"posix-basic", regex.Basic},
	{"posix-egrep", regex.GrepExtended},
	{"egrep", regex.GrepExtended},
	{"posix-extended", regex.Extended},
	{"posix-minimal-basic", regex.Basic},
	{"sed", regex.Basic},
}

func (p *parser) setSyntax(name string) error {
	var names []string
	for _, s := range syntaxes {
		if s.name == name {
			p.syntax = s.syntax
			return nil
		}
		names = append(names, gnu.Quote(s.name))
	}
	return complain("Unknown regular expression type %s; valid types are %s.", gnu.Quote(name), strings.Join(names, ", "))
}

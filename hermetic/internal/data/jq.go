package data

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// program is one call of jq.
type program struct {
	*gnu.Work
	opts  jqOptions
	in    *source
	m     *machine
	query *gojq.Query
	scope *scope
	print printer

	last     any
	outputs  int
	finished bool
}

func jq(w *gnu.Work) {
	p := &program{Work: w, opts: jqOptions{indent: 2}}
	if !p.opts.parse(w) {
		return
	}
	if !p.prepare() {
		return
	}
	p.in = &source{w: w, names: p.opts.files, opts: &p.opts}
	defer p.in.close()
	p.run()
	if p.in.failed && !p.finished {
		w.Status = max(w.Status, 2)
	}
	if p.opts.exitStatus && w.Status == 0 && !p.finished {
		switch {
		case p.outputs == 0:
			w.Status = 4
		case !truthy(p.last):
			w.Status = 1
		}
	}
}

// prepare parses the program and makes the machine that runs it.
func (p *program) prepare() bool {
	o := &p.opts
	p.print = printer{ascii: o.ascii, sorted: o.sorted, colors: o.colors}
	switch {
	case o.tab:
		p.print.indent = "\t"
	case !o.compact:
		p.print.indent = strings.Repeat(" ", o.indent)
	}
	p.m = &machine{ctx: p.Ctx, budget: p.Budget, source: o.program, gojq: map[string]*gojq.Code{}}
	p.m.host = p.host()
	if err := p.m.load(); err != nil {
		p.Die(3, "%s", err)
		return false
	}
	if err := tooNested(o.program); err != nil {
		return p.compileError(err)
	}
	q, err := gojq.Parse(o.program)
	if err != nil {
		return p.compileError(syntax(err))
	}
	if tooLong(reflect.ValueOf(q), 0) {
		return p.compileError(errNested)
	}
	for _, k := range o.named.keys() {
		v, _ := o.named.get(k)
		p.scope = &scope{up: p.scope, name: "$" + k, value: v}
	}
	args := newObject(2)
	args.put("positional", append([]any{}, o.positional...))
	args.put("named", o.named)
	p.scope = &scope{up: p.scope, name: "$ARGS", value: args}
	if err := p.m.check(q, p.scope); err != nil {
		return p.compileError(err)
	}
	p.query = q
	return true
}

var errNested = errors.New("the program is nested too deeply")

// tooLong reports whether a tree is deeper than filters may call each other:
// what is chained, such as 1+1+1 and .a.b.c, is nested, too.
//
// Threat: a chain of a hundred thousand operators lets the compiler, which looks
// for unknown names, run off its stack, and that ends the run with no other
// reason -> refused before.
func tooLong(v reflect.Value, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && tooLong(v.Elem(), depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if tooLong(v.Field(i), depth+1) {
				return true
			}
		}
	case reflect.Slice:
		each := 0 // further than the one before it
		if v.Type().Elem() == reflect.TypeFor[*gojq.Suffix]() {
			each = 1
		}
		for i := range v.Len() {
			if tooLong(v.Index(i), depth+i*each) {
				return true
			}
		}
	}
	return false
}

// tooNested refuses a program whose brackets would need a deep stack.
func tooNested(program string) error {
	depth := 0
	for _, c := range program {
		switch c {
		case '(', '[', '{':
			if depth++; depth > 2000 {
				return errNested
			}
		case ')', ']', '}':
			depth--
		}
	}
	return nil
}

func syntax(err error) error {
	var pe *gojq.ParseError
	if errors.As(err, &pe) {
		token := pe.Token
		if token == "" {
			token = "$end"
		}
		return fmt.Errorf("syntax error, unexpected %s (Unix shell quoting issues?)", token)
	}
	return err
}

func (p *program) compileError(err error) bool {
	p.Complain("error: %s at <top-level>, line 1:\n%s", err, p.opts.program)
	p.Die(3, "1 compile error")
	return false
}

// check finds names that are not defined.
func (m *machine) check(q *gojq.Query, s *scope) error {
	options := []gojq.CompilerOption{gojq.WithInputIter(gojq.NewIter[any]())}
	vars := []string{"$__loc__", "$ENV"}
	for at := s; at != nil; at = at.up {
		vars = append(vars, at.name)
	}
	options = append(options, gojq.WithVariables(vars))
	stub := func(name string) {
		name, count, _ := strings.Cut(name, "/")
		n := int(count[0] - '0')
		options = append(options, gojq.WithFunction(name, n, n, func(any, []any) any { return nil }))
	}
	for name := range m.natives {
		stub(name)
	}
	for at := m.prelude; at != nil; at = at.up {
		stub(at.name)
	}
	_, err := gojq.Compile(q, options...)
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, prefix := range []string{"function not defined: ", "variable not defined: ", "label not defined: "} {
		if name, ok := strings.CutPrefix(text, prefix); ok {
			if strings.HasPrefix(prefix, "label") {
				name = "$*label-" + strings.TrimPrefix(name, "$")
			}
			return fmt.Errorf("%s is not defined", name)
		}
	}
	return err
}

func (p *program) host() host {
	env := newObject(len(p.Env))
	for _, kv := range p.Env {
		k, v, _ := strings.Cut(kv, "=")
		env.put(k, strings.ToValidUTF8(v, "\ufffd"))
	}
	return host{
		input: func() (any, error) { return p.in.next() },
		filename: func() any {
			if p.in.name == "" || p.in.name == "-" {
				return nil
			}
			return p.in.name
		},
		line: func() int { return p.in.line() },
		message: func(s string) {
			_ = p.Out.Flush()
			fmt.Fprint(p.Stderr, s)
		},
		env: env,
		now: func() float64 { return float64(p.Now().UnixMicro()) / 1e6 },
	}
}

// run feeds the inputs to the program.
func (p *program) run() {
	for first := true; ; first = false {
		var v any
		var err error
		if !p.opts.null {
			v, err = p.in.next()
		} else if !first {
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.inputError(err)
			return
		}
		p.m.depth = 0
		if err := p.m.eval(p.query, p.scope, item{v: v}, p.output); err != nil && !p.failed(err) {
			return
		}
	}
}

func (p *program) inputError(err error) {
	if p.Ctx.Err() != nil {
		p.finished = true
		return
	}
	var syn *syntaxError
	if errors.As(err, &syn) {
		p.Die(5, "parse error: %s", err)
	} else {
		p.Die(2, "error (at %s): %s", p.in.position(), command.Reason(err))
	}
	p.finished = true
}

var errWrite = errors.New("write error")

func (p *program) output(x item) error {
	p.last = x.v
	p.outputs++
	if p.opts.seq {
		p.Out.WriteByte(0x1e)
	}
	if s, ok := x.v.(string); ok && p.opts.raw && !p.opts.ascii {
		p.Out.WriteString(s)
	} else {
		p.print.b = p.print.b[:0]
		p.print.value(x.v, 0)
		b := p.print.b
		if ok && p.opts.raw {
			b = b[1 : len(b)-1]
		}
		p.Out.Write(b)
	}
	var err error
	switch {
	case p.opts.nul:
		err = p.Out.WriteByte(0)
	case !p.opts.join:
		err = p.Out.WriteByte('\n')
	default:
		_, err = p.Out.Write(nil)
	}
	if err == nil && p.opts.unbuffered {
		err = p.Out.Flush()
	}
	if err != nil {
		return errWrite
	}
	return nil
}

// failed reports an error and whether to go on with the next input.
func (p *program) failed(err error) bool {
	var f *failure
	var h *halted
	var syn *syntaxError
	switch {
	case errors.Is(err, errWrite) || p.Ctx.Err() != nil:
		p.finished = true
		return false
	case errors.As(err, &h):
		p.halt(h)
		return false
	case errors.As(err, &syn):
		p.inputError(err)
		return false
	case errors.As(err, &f):
		p.Status = 5
		if s, ok := f.v.(string); ok {
			p.Complain("error (at %s): %s", p.in.position(), s)
		} else {
			p.Complain("error (at %s) (not a string): %s", p.in.position(), tojson(f.v))
		}
		return true
	}
	p.Status = 5
	p.Complain("error (at %s): %s", p.in.position(), err)
	return true
}

func (p *program) halt(h *halted) {
	p.finished, p.Status = true, h.status
	_ = p.Out.Flush()
	if !h.loud {
		return
	}
	if s, ok := h.value.(string); ok {
		fmt.Fprint(p.Stderr, s)
	} else {
		fmt.Fprintln(p.Stderr, tojson(h.value))
	}
}

package jq

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/jq/lang"
	"egressd/hermetic/internal/jq/value"
)

// Program is one call of jq.
type Program struct {
	*gnu.Work
	opts  JqOptions
	In    *Source
	m     *lang.Machine
	query *gojq.Query
	scope *lang.Scope
	print value.Printer

	last     any
	outputs  int
	finished bool
}

func jq(w *gnu.Work) {
	p := &Program{Work: w, opts: JqOptions{indent: 2}}
	if !p.opts.parse(w) {
		return
	}
	if !p.prepare() {
		return
	}
	p.In = &Source{W: w, names: p.opts.files, Opts: &p.opts}
	defer p.In.close()
	p.run()
	if p.In.failed && !p.finished {
		w.Status = max(w.Status, 2)
	}
	if p.opts.exitStatus && w.Status == 0 && !p.finished {
		switch {
		case p.outputs == 0:
			w.Status = 4
		case !value.Truthy(p.last):
			w.Status = 1
		}
	}
}

// prepare parses the program and makes the machine that runs it.
func (p *Program) prepare() bool {
	o := &p.opts
	p.print = value.Printer{Ascii: o.ascii, Sorted: o.sorted, Colors: o.colors}
	switch {
	case o.tab:
		p.print.Indent = "\t"
	case !o.compact:
		p.print.Indent = strings.Repeat(" ", o.indent)
	}
	p.m = &lang.Machine{Ctx: p.Ctx, Budget: p.Budget, Source: o.program, Gojq: map[string]*gojq.Code{}}
	p.m.Host = p.Host()
	if err := p.m.Load(); err != nil {
		p.Die(3, "%s", err)
		return false
	}
	if err := TooNested(o.program); err != nil {
		return p.compileError(err)
	}
	q, err := gojq.Parse(o.program)
	if err != nil {
		return p.compileError(syntax(err))
	}
	if tooLong(reflect.ValueOf(q), 0) {
		return p.compileError(errNested)
	}
	for _, k := range o.named.Keys() {
		v, _ := o.named.Get(k)
		p.scope = &lang.Scope{Up: p.scope, Name: "$" + k, Value: v}
	}
	args := value.NewObject(2)
	args.Put("positional", append([]any{}, o.positional...))
	args.Put("named", o.named)
	p.scope = &lang.Scope{Up: p.scope, Name: "$ARGS", Value: args}
	if err := p.m.Check(q, p.scope); err != nil {
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
	if depth > lang.MaxDepth {
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

// TooNested refuses a program whose brackets would need a deep stack.
func TooNested(program string) error {
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

func (p *Program) compileError(err error) bool {
	p.Complain("error: %s at <top-level>, line 1:\n%s", err, p.opts.program)
	p.Die(3, "1 compile error")
	return false
}

// Host is what the program can ask of the session.
func (p *Program) Host() lang.Host {
	env := value.NewObject(len(p.Env))
	for _, kv := range p.Env {
		k, v, _ := strings.Cut(kv, "=")
		env.Put(k, strings.ToValidUTF8(v, "\ufffd"))
	}
	return lang.Host{
		Input: func() (any, error) { return p.In.Next() },
		Filename: func() any {
			if p.In.name == "" || p.In.name == "-" {
				return nil
			}
			return p.In.name
		},
		Line: func() int { return p.In.line() },
		Message: func(s string) {
			_ = p.Out.Flush()
			fmt.Fprint(p.Stderr, s)
		},
		Env: env,
		Now: func() float64 { return float64(p.Now().UnixMicro()) / 1e6 },
	}
}

// run feeds the inputs to the program.
func (p *Program) run() {
	for first := true; ; first = false {
		var v any
		var err error
		if !p.opts.null {
			v, err = p.In.Next()
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
		p.m.Depth = 0
		if err := p.m.Eval(p.query, p.scope, lang.Item{V: v}, p.output); err != nil && !p.failed(err) {
			return
		}
	}
}

func (p *Program) inputError(err error) {
	if p.Ctx.Err() != nil {
		p.finished = true
		return
	}
	var syn *value.SyntaxError
	if errors.As(err, &syn) {
		p.Die(5, "parse error: %s", err)
	} else {
		p.Die(2, "error (at %s): %s", p.In.position(), command.Reason(err))
	}
	p.finished = true
}

var errWrite = errors.New("write error")

func (p *Program) output(x lang.Item) error {
	p.last = x.V
	p.outputs++
	if p.opts.seq {
		p.Out.WriteByte(0x1e)
	}
	if s, ok := x.V.(string); ok && p.opts.raw && !p.opts.ascii {
		p.Out.WriteString(s)
	} else {
		p.print.B = p.print.B[:0]
		p.print.Value(x.V, 0)
		b := p.print.B
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
func (p *Program) failed(err error) bool {
	var f *lang.Failure
	var h *lang.Halted
	var syn *value.SyntaxError
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
		if s, ok := f.V.(string); ok {
			p.Complain("error (at %s): %s", p.In.position(), s)
		} else {
			p.Complain("error (at %s) (not a string): %s", p.In.position(), value.Tojson(f.V))
		}
		return true
	}
	p.Status = 5
	p.Complain("error (at %s): %s", p.In.position(), err)
	return true
}

func (p *Program) halt(h *lang.Halted) {
	p.finished, p.Status = true, h.Status
	_ = p.Out.Flush()
	if !h.Loud {
		return
	}
	if s, ok := h.Value.(string); ok {
		fmt.Fprint(p.Stderr, s)
	} else {
		fmt.Fprintln(p.Stderr, value.Tojson(h.Value))
	}
}

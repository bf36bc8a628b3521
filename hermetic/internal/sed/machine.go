package sed

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

var errMemory = &failure{statusPanic, "memory exhausted"}

// machine runs a script.
type machine struct {
	ctx  context.Context
	c    *command.Call
	o    *options
	prog *program
	in   *input
	out  *output // the standard output, or the file that -i makes
	std  *output

	pattern, hold []byte
	chomped       bool // the line had its newline
	heldChomped   bool // that in the hold space had
	replaced      bool // since the last line was read, for t
	last          *regex.Regexp
	queue         []appended
	readers       map[string]*lineReader // of R
	steps         int
	status        int
}

// appended is what is written at the end of the cycle.
type appended struct {
	text []byte
	file string
}

func newMachine(ctx context.Context, c *command.Call, o *options, prog *program) *machine {
	m := &machine{ctx: ctx, c: c, o: o, prog: prog, out: prog.std, std: prog.std, heldChomped: true, readers: map[string]*lineReader{}}
	m.o.quiet = o.quiet || prog.quiet
	m.in = &input{m: m, names: o.files}
	if len(o.files) == 0 {
		m.in.names = []string{"-"}
	}
	return m
}

// next is what happens after a command.
type next int

const (
	goOn     next = iota
	endCycle      // with the line printed
	dropLine      // without
	again         // without, and without reading a line (D)
	stopNow       // q; print, then end
	stopMute      // Q
)

func (m *machine) run() (int, error) {
	if m.o.inPlace && len(m.o.files) == 0 {
		return statusPanic, fail(statusPanic, "no input files")
	}
	for ok, err := m.read(); ; ok, err = m.read() {
		if err != nil || !ok {
			return m.status, err
		}
		stop, err := m.cycle()
		if err != nil {
			return m.status, err
		}
		if stop {
			return m.status, m.in.leave()
		}
	}
}

// cycle runs the script over the line that was read, and again after D.
func (m *machine) cycle() (stop bool, err error) {
	for {
		what, err := m.execute()
		if err != nil {
			return true, err
		}
		if (what == endCycle || what == goOn || what == stopNow) && !m.o.quiet {
			if err := m.out.line(m.pattern, m.delimiter(), m.chomped); err != nil {
				return true, err
			}
		}
		if what == stopMute {
			return true, nil
		}
		if err := m.flushQueue(); err != nil {
			return true, err
		}
		if what != again {
			return what == stopNow, nil
		}
	}
}

func (m *machine) delimiter() byte {
	if m.o.zero {
		return 0
	}
	return '\n'
}

// read takes the next line into the pattern space.
func (m *machine) read() (bool, error) {
	if err := m.flushQueue(); err != nil {
		return false, err
	}
	line, chomped, ok, err := m.in.next()
	if !ok || err != nil {
		return false, err
	}
	m.pattern, m.chomped, m.replaced = append(m.pattern[:0], line...), chomped, false
	if m.o.unbuffered {
		err = m.out.w.Flush()
	}
	return true, err
}

// execute runs the script once.
func (m *machine) execute() (next, error) {
	for pc := 0; pc < len(m.prog.code); {
		if err := m.step(); err != nil {
			return goOn, err
		}
		in := m.prog.code[pc]
		match, err := m.selected(in)
		if err != nil {
			return goOn, err
		}
		pc++
		switch {
		case !match:
			if in.name == '{' {
				pc = in.jump
			}
			continue
		case in.name == 'b', in.name == 't' && m.replaced, in.name == 'T' && !m.replaced:
			pc = in.jump
		}
		if in.name == 't' || in.name == 'T' {
			m.replaced = false
			continue
		}
		what, err := m.do(in)
		if err != nil || what != goOn {
			return what, err
		}
	}
	return endCycle, nil
}

// step counts, and ends the run when it is over.
func (m *machine) step() error {
	if m.steps++; m.steps&0xff != 0 {
		return nil
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if most := m.c.Budget.Limits.Memory / 8; int64(len(m.pattern)) > most || int64(len(m.hold)) > most {
		return errMemory
	}
	return m.c.Budget.Steps(0x100)
}

// grow reports whether the spaces may hold n bytes.
func (m *machine) grow(n int) error {
	if int64(n) > m.c.Budget.Limits.Memory/8 {
		return errMemory
	}
	return nil
}

func (m *machine) do(in *instruction) (next, error) {
	switch in.name {
	case '=':
		return goOn, m.out.text([]byte(strconv.FormatInt(m.in.number, 10) + "\n"))
	case 'a':
		m.queue = append(m.queue, appended{text: in.text})
	case 'i':
		return goOn, m.out.text(in.text)
	case 'c':
		return m.change(in)
	case 'd':
		return dropLine, nil
	case 'D':
		at := bytes.IndexByte(m.pattern, m.delimiter())
		if at < 0 {
			return dropLine, nil
		}
		m.pattern = append(m.pattern[:0], m.pattern[at+1:]...)
		return again, nil
	case 'F':
		return goOn, m.out.text([]byte(m.in.shown() + "\n"))
	case 'g':
		m.pattern, m.chomped = append(m.pattern[:0], m.hold...), m.heldChomped
	case 'G':
		m.pattern = append(append(m.pattern, m.delimiter()), m.hold...)
		m.chomped = m.heldChomped
		return goOn, m.grow(len(m.pattern))
	case 'h':
		m.hold, m.heldChomped = append(m.hold[:0], m.pattern...), m.chomped
	case 'H':
		m.hold = append(append(m.hold, m.delimiter()), m.pattern...)
		m.heldChomped = m.chomped
		return goOn, m.grow(len(m.hold))
	case 'x':
		m.pattern, m.hold = m.hold, m.pattern
		m.chomped, m.heldChomped = m.heldChomped, m.chomped
	case 'z':
		m.pattern = m.pattern[:0]
	case 'q', 'Q':
		m.status = max(in.number, 0)
		if in.name == 'Q' {
			return stopMute, nil
		}
		return stopNow, nil
	case 's':
		return goOn, m.substitute(in.sub)
	case 'y':
		m.transliterate(in)
	default:
		return m.doIO(in)
	}
	return goOn, nil
}

// doIO are the commands that read and write more.
func (m *machine) doIO(in *instruction) (next, error) {
	switch in.name {
	case 'l':
		return goOn, m.list(in.number)
	case 'p':
		return goOn, m.out.line(m.pattern, m.delimiter(), m.chomped)
	case 'P':
		return goOn, m.firstLine(m.out)
	case 'n':
		return m.nextLine()
	case 'N':
		return m.appendLine()
	case 'r':
		m.queue = append(m.queue, appended{file: string(in.text)})
	case 'R':
		return goOn, m.readOne(string(in.text))
	case 'w':
		return goOn, in.out.line(m.pattern, m.delimiter(), m.chomped)
	case 'W':
		return goOn, m.firstLine(in.out)
	case 'e':
		return goOn, m.eval(in)
	}
	return goOn, nil
}

// firstLine writes the pattern space up to its first newline.
func (m *machine) firstLine(o *output) error {
	first, _, found := bytes.Cut(m.pattern, []byte{m.delimiter()})
	return o.line(first, m.delimiter(), found || m.chomped)
}

// reset is for the next of separate files.
func (m *machine) reset() {
	m.hold, m.heldChomped = m.hold[:0], true
	for _, in := range m.prog.code {
		in.active, in.begun = in.a1.kind == addrZero, false
	}
	for _, r := range m.readers {
		r.close()
	}
	clear(m.readers)
}

// change is c: in a range the text comes at its end.
func (m *machine) change(in *instruction) (next, error) {
	if in.a2.kind == addrNone || in.negate || !in.active {
		if err := m.out.text(in.text); err != nil {
			return goOn, err
		}
	}
	return dropLine, nil
}

func (m *machine) nextLine() (next, error) {
	more, err := m.in.more()
	if err != nil {
		return goOn, err
	}
	if !more {
		if m.o.posix {
			return dropLine, nil
		}
		return endCycle, nil
	}
	if !m.o.quiet {
		if err := m.out.line(m.pattern, m.delimiter(), m.chomped); err != nil {
			return goOn, err
		}
	}
	replaced := m.replaced
	_, err = m.read()
	m.replaced = replaced
	return goOn, err
}

func (m *machine) appendLine() (next, error) {
	more, err := m.in.more()
	if err != nil {
		return goOn, err
	}
	if !more {
		if m.o.posix {
			return dropLine, nil
		}
		return endCycle, nil
	}
	if err := m.flushQueue(); err != nil {
		return goOn, err
	}
	line, chomped, _, err := m.in.next()
	if err != nil {
		return goOn, err
	}
	m.pattern = append(append(m.pattern, m.delimiter()), line...)
	m.chomped = chomped
	return goOn, m.grow(len(m.pattern))
}

func (m *machine) transliterate(in *instruction) {
	var out []byte
	p := parser{o: m.o}
	for rest := string(m.pattern); rest != ""; {
		n := p.width(rest)
		if to, ok := in.table[rest[:n]]; ok {
			out = append(out, to...)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	m.pattern = out
}

// close ends all output.
func (m *machine) close() error {
	err := errors.Join(m.in.close(), m.std.close())
	for _, o := range m.prog.outs {
		err = errors.Join(err, o.close())
	}
	for _, r := range m.readers {
		r.close()
	}
	return err
}

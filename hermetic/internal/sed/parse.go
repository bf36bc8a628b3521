package sed

import (
	"strings"
	"unicode/utf8"

	"egressd/hermetic/command"
)

// end is what next reports after the last character.
const end = -1

// maxCommands bounds a script.
const maxCommands = 200_000

// parser reads a script, which is its chunks with newlines between.
type parser struct {
	c      *command.Call
	o      *options
	text   string
	starts []int // of the chunks in text
	pos    int
	past   bool // next has reported the end
	zero   bool // an error is of no place

	prog   *program
	blocks []int // open { by index
	labels map[string]int
}

func newParser(c *command.Call, o *options) *parser {
	p := &parser{c: c, o: o, labels: map[string]int{}, prog: &program{outs: map[string]*output{}, std: &output{w: newWriter(c.Stdout)}}}
	var b strings.Builder
	for i, ch := range o.chunks {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.starts = append(p.starts, b.Len())
		b.WriteString(ch.text)
	}
	p.text = b.String()
	return p
}

// place is the chunk where the parser is, and the count of characters read of
// it; in a file, of lines.
func (p *parser) place() (chunk, int) {
	at := len(p.starts) - 1
	for at > 0 && p.starts[at] >= p.pos && p.pos > 0 {
		at--
	}
	ch := p.o.chunks[at]
	switch n := min(p.pos-p.starts[at], len(ch.text)); {
	case p.zero:
		return ch, 0
	case ch.file != "":
		return ch, 1 + strings.Count(strings.TrimSuffix(ch.text[:n], "\n"), "\n")
	default:
		return ch, n
	}
}

func (p *parser) next() int {
	if p.pos >= len(p.text) {
		p.past = true
		return end
	}
	p.pos++
	return int(p.text[p.pos-1])
}

// back gives c back, which next has just reported.
func (p *parser) back(c int) {
	if c != end {
		p.pos--
	}
	p.past = false
}

func (p *parser) peek() int {
	if p.pos >= len(p.text) {
		return end
	}
	return int(p.text[p.pos])
}

func space(c int) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// nonblank is the next character that is no space; a newline is one to it.
func (p *parser) nonblank() int {
	for {
		c := p.next()
		if c == '\n' || !space(c) {
			return c
		}
	}
}

func (p *parser) parse() (*program, error) {
	if strings.HasPrefix(p.text, "#n") && (len(p.text) == 2 || p.text[2] == '\n') && len(p.o.chunks[0].text) >= 2 {
		p.prog.quiet = true
	}
	for {
		c := p.next()
		for c == ';' || space(c) {
			c = p.next()
		}
		if c == end {
			break
		}
		p.back(c)
		if len(p.prog.code) >= maxCommands {
			return nil, fail(statusPanic, "memory exhausted")
		}
		if err := p.command(); err != nil {
			return nil, err
		}
	}
	if len(p.blocks) > 0 {
		p.zero = true
		return nil, p.bad("unmatched `{'")
	}
	return p.prog, p.jumps()
}

// jumps finds where the jumps go.
func (p *parser) jumps() error {
	for _, in := range p.prog.code {
		switch in.name {
		case 'b', 't', 'T':
		default:
			continue
		}
		in.jump = len(p.prog.code)
		if in.label == "" {
			continue
		}
		at, ok := p.labels[in.label]
		if !ok {
			return fail(statusPanic, "can't find label for jump to `%s'", in.label)
		}
		in.jump = at
	}
	return nil
}

// command reads one command with its addresses.
func (p *parser) command() error {
	in := &instruction{number: -1}
	if c := p.peek(); c == '#' {
		p.next()
		p.comment()
		return nil
	}
	if err := p.addresses(in); err != nil {
		return err
	}
	c := p.nonblank()
	if c == '!' {
		in.negate = true
		if c = p.nonblank(); c == '!' {
			return p.bad("multiple `!'s")
		}
	}
	if c == end || c == '\n' {
		return p.bad("missing command")
	}
	in.name = byte(c)
	return p.arguments(in)
}

func (p *parser) comment() {
	for c := p.next(); c != end && c != '\n'; c = p.next() {
	}
}

// addresses reads none, one or two.
func (p *parser) addresses(in *instruction) error {
	var ok bool
	var err error
	if in.a1, ok, err = p.address(); err != nil || !ok {
		return err
	}
	switch in.a1.kind {
	case addrPlus, addrUntil:
		return p.bad("invalid usage of +N or ~N as first address")
	}
	c := p.nonblank()
	if c != ',' {
		if in.a1.kind == addrLine && in.a1.n == 0 {
			return p.bad("invalid usage of line address 0")
		}
		p.back(c)
		return nil
	}
	c = p.nonblank()
	p.back(c)
	if in.a2, ok, err = p.address(); err != nil {
		return err
	}
	if !ok {
		p.next()
		return p.bad("unexpected `,'")
	}
	if in.a1.kind == addrLine && in.a1.n == 0 {
		if in.a2.kind != addrRegex || p.o.posix {
			p.next()
			return p.bad("invalid usage of line address 0")
		}
		in.a1.kind = addrZero
		in.active = true
	}
	return nil
}

// address reads one; not ok: none is there.
func (p *parser) address() (a address, ok bool, err error) {
	c := p.next()
	switch {
	case c == '/' || c == '\\':
		if c == '\\' {
			if c = p.next(); c == end {
				return a, false, p.bad("unterminated address regex")
			}
		}
		text, ok := p.delimited(byte(c), true)
		if !ok {
			return a, false, p.bad("unterminated address regex")
		}
		a.kind = addrRegex
		flags := p.addressFlags()
		a.re, err = p.compile(text, flags)
		return a, true, err
	case c >= '0' && c <= '9':
		a.kind, a.n = addrLine, p.number(c)
		c = p.nonblank()
		if c != '~' || p.o.posix {
			p.back(c)
			return a, true, nil
		}
		if c = p.nonblank(); c >= '0' && c <= '9' {
			a.m = p.number(c)
		} else {
			p.back(c)
		}
		if a.m > 0 {
			a.kind = addrStep
		}
		return a, true, nil
	case (c == '+' || c == '~') && !p.o.posix:
		a.kind = addrPlus
		if c == '~' {
			a.kind = addrUntil
		}
		if c = p.nonblank(); c >= '0' && c <= '9' {
			a.n = p.number(c)
		} else {
			p.back(c)
		}
		return a, true, nil
	case c == '$':
		a.kind = addrLast
		return a, true, nil
	}
	p.back(c)
	return a, false, nil
}

// addressFlags reads the I and M after a regex.
func (p *parser) addressFlags() (f reFlags) {
	for {
		switch c := p.nonblank(); c {
		case 'I':
			f.fold = true
		case 'M':
			f.lines = true
		default:
			p.back(c)
			return f
		}
	}
}

// number reads digits, c being the first.
func (p *parser) number(c int) int64 {
	var n int64
	for ; c >= '0' && c <= '9'; c = p.next() {
		if n = n*10 + int64(c-'0'); n > 1<<60 {
			n = 1 << 60
		}
	}
	p.back(c)
	return n
}

// delimited reads up to the delimiter: "\d" is d itself then, "\n" in a regex
// a newline, and in a bracket expression the delimiter is a character.
func (p *parser) delimited(d byte, re bool) (string, bool) {
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == d:
			p.pos++
			return b.String(), true
		case c == '\n' && re:
			// a newline in a regex ends it, but one after a backslash
			p.pos++
			p.pos--
			return "", false
		case c == '\\':
			p.pos++
			if p.pos >= len(p.text) {
				return "", false
			}
			switch e := p.text[p.pos]; {
			case e == d && !(d == 'n' && re):
				b.WriteByte(d)
			case e == 'n' && re && d == 'n':
				b.WriteByte('n')
			case e == '\n' && re:
				b.WriteByte('\n')
			default:
				b.WriteByte('\\')
				b.WriteByte(e)
			}
			p.pos++
		case c == '[' && re:
			n := bracketLen(p.text[p.pos:])
			if n == 0 {
				p.pos = len(p.text)
				return "", false
			}
			b.WriteString(p.text[p.pos : p.pos+n])
			p.pos += n
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	return "", false
}

// bracketLen is how long the bracket expression at the begin of s is; 0: it
// has no end.
func bracketLen(s string) int {
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++
	}
	for i < len(s) && s[i] != ']' {
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			if at := strings.Index(s[i+2:], string(s[i+1])+"]"); at >= 0 {
				i += at + 4
				continue
			}
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	if i >= len(s) {
		return 0
	}
	return i + 1
}

package sed

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/regex"
)

// reFlags are the flags of a regular expression.
type reFlags struct{ fold, lines bool }

// compile compiles one; the empty one is nil, the last that was used.
func (p *parser) compile(text string, f reFlags) (*regex.Regexp, error) {
	if text == "" {
		if f.fold || f.lines {
			return nil, p.bad("cannot specify modifiers on empty regexp")
		}
		return nil, nil
	}
	syntax := regex.SedBasic
	if p.o.extended {
		syntax = regex.SedExtended
	}
	re, err := regex.Compile(text, regex.Options{
		Syntax: syntax, Fold: f.fold, Lines: f.lines, Bytes: p.o.byteLocale, Steps: p.c.Budget.Steps,
	})
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "character class syntax"):
		return nil, fail(statusUsage, "%v", err)
	case err != nil:
		return nil, p.bad("%v", err)
	}
	return re, nil
}

// arguments reads what follows the name of a command.
func (p *parser) arguments(in *instruction) error {
	switch in.name {
	case '#':
		if in.a1.kind != addrNone {
			return p.bad("comments don't accept any addresses")
		}
		p.comment()
		return nil
	case '{':
		p.blocks = append(p.blocks, len(p.prog.code))
		p.add(in)
		return nil
	case '}':
		return p.closeBlock(in)
	case ':':
		return p.label(in)
	case 'b', 't', 'T':
		in.label = p.readLabel()
		p.add(in)
		return p.endOfCommand()
	case 'a', 'i', 'c':
		return p.textCommand(in)
	case 'r', 'R', 'w', 'W':
		return p.fileCommand(in)
	case 'e':
		return p.evalCommand(in)
	case 's':
		return p.substitute(in)
	case 'y':
		return p.transliterate(in)
	case 'q', 'Q', 'l', 'L':
		return p.numbered(in)
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'z', 'x':
		p.add(in)
		return p.endOfCommand()
	case 'v':
		return p.version(in)
	}
	return p.bad("unknown command: `%s'", p.lastRune())
}

// lastRune is the character that was just read.
func (p *parser) lastRune() string {
	_, n := utf8.DecodeRuneInString(p.text[p.pos-1:])
	return p.text[p.pos-1 : p.pos-1+n]
}

func (p *parser) add(in *instruction) { p.prog.code = append(p.prog.code, in) }

// endOfCommand reads what may follow a command.
func (p *parser) endOfCommand() error {
	switch c := p.nonblank(); c {
	case end, '\n', ';':
	case '#', '}':
		p.back(c)
		if c == '}' && len(p.blocks) == 0 {
			p.next()
			return p.bad("unexpected `}'")
		}
	default:
		return p.bad("extra characters after command")
	}
	return nil
}

func (p *parser) closeBlock(in *instruction) error {
	if len(p.blocks) == 0 {
		return p.bad("unexpected `}'")
	}
	if in.a1.kind != addrNone {
		return p.bad("} doesn't want any addresses")
	}
	open := p.blocks[len(p.blocks)-1]
	p.blocks = p.blocks[:len(p.blocks)-1]
	p.prog.code[open].jump = len(p.prog.code)
	return p.endOfCommand()
}

// readLabel reads up to a space, a semicolon or a brace.
func (p *parser) readLabel() string {
	c := p.nonblank()
	if c == end {
		return ""
	}
	start := p.pos - 1
	for c != end && !space(c) && c != ';' && c != '}' {
		c = p.next()
	}
	p.back(c)
	return p.text[start:p.pos]
}

func (p *parser) label(in *instruction) error {
	if in.a1.kind != addrNone {
		return p.bad(": doesn't want any addresses")
	}
	name := p.readLabel()
	if name == "" {
		return p.bad("\":\" lacks a label")
	}
	p.labels[name] = len(p.prog.code)
	return nil
}

func (p *parser) numbered(in *instruction) error {
	if in.a2.kind != addrNone && (in.name == 'q' || in.name == 'Q') {
		return p.bad("command only uses one address")
	}
	if in.name == 'L' {
		return p.bad("unknown command: `L'")
	}
	c := p.nonblank()
	if c >= '0' && c <= '9' {
		in.number = int(min(p.number(c), 1<<30))
	} else {
		p.back(c)
	}
	p.add(in)
	return p.endOfCommand()
}

func (p *parser) version(in *instruction) error {
	want := p.readLabel()
	if want == "" {
		return p.endOfCommand()
	}
	var parts [3]int64
	for i, s := range strings.SplitN(want, ".", 3) {
		for _, c := range []byte(s) {
			if c < '0' || c > '9' {
				return p.bad("invalid version")
			}
			parts[i] = min(parts[i]*10+int64(c-'0'), 1000)
		}
	}
	if parts[0] > 4 || parts[0] == 4 && parts[1] > 9 {
		return p.bad("expected newer version of sed")
	}
	return p.endOfCommand()
}

// textCommand reads the text of a, i or c.
func (p *parser) textCommand(in *instruction) error {
	c := p.nonblank()
	if c == end {
		return p.bad("expected \\ after `a', `c' or `i'")
	}
	if c == '\\' {
		if c = p.peek(); c == end {
			p.add(in)
			return nil
		}
		for c = p.next(); c != '\n' && space(c); c = p.next() {
		}
		if c != '\n' { // "a\text": white space before text was cut, but not after a second backslash
			p.back(c)
			if p.o.posix {
				return p.bad("expected \\ after `a', `c' or `i'")
			}
			p.restoreBlanks()
		}
	} else {
		if p.o.posix {
			return p.bad("expected \\ after `a', `c' or `i'")
		}
		p.back(c)
		if c == '\n' {
			return p.bad("expected \\ after `a', `c' or `i'")
		}
	}
	in.text = p.readText()
	p.add(in)
	return nil
}

// restoreBlanks goes back over the blanks between a backslash and the text:
// GNU keeps them.
func (p *parser) restoreBlanks() {
	for p.pos > 0 && (p.text[p.pos-1] == ' ' || p.text[p.pos-1] == '\t') {
		p.pos--
	}
}

// readText reads lines up to one that does not end in a backslash.
func (p *parser) readText() []byte {
	var b bytes.Buffer
	for {
		c := p.next()
		if c == end || c == '\n' {
			break
		}
		if c != '\\' {
			b.WriteByte(byte(c))
			continue
		}
		if c = p.next(); c == end {
			break
		}
		p.pos--
		if r, n := charEscape(p.text[p.pos:]); n > 0 {
			b.WriteByte(r)
			p.pos += n
			continue
		}
		b.WriteByte(p.text[p.pos])
		p.pos++
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// charEscape reads an escape that is one byte, after its backslash; n 0: none.
func charEscape(s string) (c byte, n int) {
	if s == "" {
		return 0, 0
	}
	if at := strings.IndexByte("afrtv", s[0]); at >= 0 {
		return "\a\f\r\t\v"[at], 1
	}
	switch s[0] {
	case 'c':
		if len(s) > 1 {
			return strings.ToUpper(s[1:2])[0] ^ 0x40, 2
		}
	case 'd':
		return digits(s, 10, 3)
	case 'o':
		return digits(s, 8, 3)
	case 'x':
		return digits(s, 16, 2)
	}
	return 0, 0
}

func digits(s string, base, most int) (c byte, n int) {
	v := 0
	for n = 1; n < len(s) && n <= most; n++ {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] < 'A' {
			d = strings.IndexByte("0123456789", s[n])
		}
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
	}
	if n == 1 {
		return 0, 0
	}
	return byte(v), n
}

// fileName reads the rest of the line.
func (p *parser) fileName() string {
	c := p.nonblank()
	start := p.pos
	if c != end {
		start--
	}
	for c != end && c != '\n' {
		c = p.next()
	}
	if c == '\n' {
		return p.text[start : p.pos-1]
	}
	return p.text[start:p.pos]
}

func (p *parser) fileCommand(in *instruction) error {
	at := p.pos
	name := p.fileName()
	if name == "" {
		p.pos = at
		return p.bad("missing filename in r/R/w/W commands")
	}
	if p.o.sandbox {
		p.pos = at
		return p.bad("e/r/w commands disabled in sandbox mode")
	}
	in.text = []byte(name)
	var err error
	if in.name == 'w' || in.name == 'W' {
		in.out, err = p.prog.open(p.c, name)
	}
	p.add(in)
	return err
}

func (p *parser) evalCommand(in *instruction) error {
	if p.o.sandbox {
		return p.bad("e/r/w commands disabled in sandbox mode")
	}
	in.text = []byte(p.fileName())
	p.add(in)
	return nil
}

// transliterate reads y/abc/xyz/.
func (p *parser) transliterate(in *instruction) error {
	d := p.next()
	from, ok := "", false
	if d != end {
		from, ok = p.delimited(byte(d), false)
	}
	to := ""
	if ok {
		to, ok = p.delimited(byte(d), false)
	}
	if !ok {
		p.pos = len(p.text)
		return p.bad("unterminated `y' command")
	}
	a, b := p.characters(from), p.characters(to)
	if len(a) != len(b) {
		return p.bad("strings for `y' command are different lengths")
	}
	in.table = map[string]string{}
	for i, c := range a {
		if _, ok := in.table[c]; !ok {
			in.table[c] = b[i]
		}
	}
	p.add(in)
	return p.endOfCommand()
}

// characters are those of one string of y.
func (p *parser) characters(s string) []string {
	var out []string
	for s != "" {
		if s[0] == '\\' && len(s) > 1 {
			if c, n := charEscape(s[1:]); n > 0 {
				out = append(out, string([]byte{c}))
				s = s[1+n:]
				continue
			}
			switch s[1] {
			case '\\':
				out = append(out, "\\")
				s = s[2:]
				continue
			case 'n', '\n':
				out = append(out, "\n")
				s = s[2:]
				continue
			}
		}
		n := p.width(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func (p *parser) width(s string) int {
	if p.o.byteLocale {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

package printf

import "strings"

// Unbounded is the width or precision of a directive whose digits exceed 31
// bits: no caller has a limit above it.
const Unbounded = 1 << 31

// Directive is one conversion of a format, such as "%-5.2f".
//
// Its methods set no limit of their own: compare Width and Prec with the limit
// of a string before formatting anything.
type Directive struct {
	Minus, Plus, Space, Alt, Zero bool // the flags - + space # 0; ' changes nothing in the C locale

	Width int    // the least length; never negative
	Prec  int    // -1: none
	Verb  byte   // the conversion character; 0: the format ends before it
	Time  string // the format of the shell's %(format)T
}

// Syntax is what may stand in a directive. The flags, digits, and "*" are the
// same for all.
type Syntax struct {
	Lengths string             // the length modifiers to skip
	Time    bool               // the shell's %(format)T
	Star    func() (int, bool) // the argument for a "*"; false: stop
}

// Parse reads the directive at the beginning of s, which starts with "%", and
// reports its length in bytes, or 0 if Star stopped. It accepts any conversion
// character: the caller rejects those that it does not have. The Verb of a time
// without its ")T" is '('.
func (y Syntax) Parse(s string) (d Directive, n int) {
	p := parser{s: s, at: 1, star: y.Star}
	p.flags(&d)
	ok := false
	if d.Width, ok = p.number(); !ok {
		return d, 0
	}
	if d.Width < 0 {
		d.Minus, d.Width = true, -d.Width
	}
	d.Prec = -1
	if p.peek() == '.' {
		p.at++
		if d.Prec, ok = p.number(); !ok {
			return d, 0
		}
		d.Prec = max(d.Prec, -1)
	}
	if y.Time && p.peek() == '(' {
		if end := strings.Index(s[p.at:], ")T"); end >= 0 {
			d.Time = s[p.at+1 : p.at+end]
			p.at += end + 1
		}
	}
	for p.at < len(s) && strings.IndexByte(y.Lengths, s[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(s) {
		return d, p.at
	}
	d.Verb = s[p.at]
	return d, p.at + 1
}

type parser struct {
	s    string
	at   int
	star func() (int, bool)
}

// peek is the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

func (p *parser) flags(d *Directive) {
	for ; ; p.at++ {
		switch p.peek() {
		case '-':
			d.Minus = true
		case '+':
			d.Plus = true
		case ' ':
			d.Space = true
		case '#':
			d.Alt = true
		case '0':
			d.Zero = true
		case '\'':
		default:
			return
		}
	}
}

// number reads digits or a "*"; none are 0.
func (p *parser) number() (int, bool) {
	if p.peek() == '*' {
		p.at++
		return p.star()
	}
	n := 0
	for ; p.peek() >= '0' && p.peek() <= '9'; p.at++ {
		n = min(n*10+int(p.peek()-'0'), Unbounded)
	}
	return n, true
}

// Pad fills s with blanks to the width. The length of s is the caller's count:
// bytes, as in C, or characters.
func (d Directive) Pad(s string, length int) string {
	switch n := d.Width - length; {
	case n <= 0:
		return s
	case d.Minus:
		return s + strings.Repeat(" ", n)
	default:
		return strings.Repeat(" ", n) + s
	}
}

// number joins the parts of a number: the zeros of the flag 0 stand between the
// prefix (sign and 0x) and the digits, all other padding is outside.
func (d Directive) number(prefix, digits string, zeros bool) string {
	n := d.Width - len(prefix) - len(digits)
	if n > 0 && zeros && d.Zero && !d.Minus {
		return prefix + strings.Repeat("0", n) + digits
	}
	return d.Pad(prefix+digits, len(prefix)+len(digits))
}

// sign is the sign of a signed conversion.
func (d Directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.Plus:
		return "+"
	case d.Space:
		return " "
	}
	return ""
}

package canonical

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Object is a JSON object from [Parse].
type Object = map[string]any

// maxDepth bounds how deep JSON may nest.
const maxDepth = 100

// Parse reads one JSON text into nil, bool, float64, string, []any and Object.
//
// It is stricter than encoding/json where leniency lets two readers of one signed
// text see different things: a name that comes twice, invalid UTF-8 and anything
// after the text are errors, and names are compared as they are written. It is more
// exact in one point: a surrogate that stands alone is kept (see [Encode]), so that
// a hash of it is the one that the writer took.
func Parse(text []byte) (any, error) {
	p := parser{text: text}
	v, err := p.value(0)
	if err == nil {
		p.space()
		if p.at < len(p.text) {
			err = errors.New("something follows the JSON text")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", p.at, err)
	}
	return v, nil
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// peek is the next byte; 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// takes consumes word if it is next.
func (p *parser) takes(word string) bool {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it nests deeper than %d", maxDepth)
	}
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.takes("true"):
		return true, nil
	case p.takes("false"):
		return false, nil
	case p.takes("null"):
		return nil, nil
	}
	return nil, errors.New("this is not JSON")
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	o := Object{}
	for first := true; ; first = false {
		p.space()
		if first && p.takes("}") {
			return o, nil
		}
		p.space()
		if p.peek() != '"' {
			return nil, errors.New("the name of a member is missing")
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, ok := o[name]; ok {
			return nil, fmt.Errorf("the member %q comes twice", name)
		}
		p.space()
		if !p.takes(":") {
			return nil, errors.New("a colon is missing")
		}
		if o[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.space()
		if p.takes("}") {
			return o, nil
		}
		if !p.takes(",") {
			return nil, errors.New("a comma is missing")
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.at++
	items := []any{}
	p.space()
	if p.takes("]") {
		return items, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		p.space()
		if p.takes("]") {
			return items, nil
		}
		if !p.takes(",") {
			return nil, errors.New("a comma is missing")
		}
	}
}

// number reads what the grammar of RFC 8259, section 6 has.
func (p *parser) number() (any, error) {
	from := p.at
	digits := func() bool {
		began := p.at
		for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
			p.at++
		}
		return p.at > began
	}
	p.takes("-")
	if !p.takes("0") && !digits() {
		return nil, errors.New("a number has no digits")
	}
	if p.takes(".") && !digits() {
		return nil, errors.New("a number has no digits after the point")
	}
	if p.takes("e") || p.takes("E") {
		if !p.takes("+") {
			p.takes("-")
		}
		if !digits() {
			return nil, errors.New("a number has no digits in its exponent")
		}
	}
	f, err := strconv.ParseFloat(string(p.text[from:p.at]), 64)
	if err != nil {
		return nil, errors.New("a number is too large")
	}
	return f, nil
}

func (p *parser) str() (string, error) {
	p.at++
	var out []byte
	for {
		switch c := p.peek(); {
		case p.at >= len(p.text):
			return "", errors.New("a string does not end")
		case c == '"':
			p.at++
			return string(out), nil
		case c < ' ':
			return "", errors.New("a control character stands in a string")
		case c == '\\':
			p.at++
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = appendRune(out, r)
		default:
			r, size := utf8.DecodeRune(p.text[p.at:])
			if r == utf8.RuneError && size == 1 {
				return "", errors.New("a string is not UTF-8")
			}
			out = append(out, p.text[p.at:p.at+size]...)
			p.at += size
		}
	}
}

// appendRune is utf8.AppendRune that keeps surrogates.
func appendRune(to []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(to, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(to, r)
}

// escape reads what follows a backslash.
func (p *parser) escape() (rune, error) {
	c := p.peek()
	p.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := p.unit()
		if !ok {
			return 0, errors.New(`four hexadecimal digits do not follow \u`)
		}
		back := p.at
		if p.takes(`\u`) {
			if low, ok := p.unit(); ok {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					return both, nil
				}
			}
			p.at = back
		}
		return r, nil
	}
	return 0, errors.New("a string has an escape that there is not")
}

func (p *parser) unit() (rune, bool) {
	if len(p.text)-p.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.text[p.at:p.at+4]), 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(n), true
}

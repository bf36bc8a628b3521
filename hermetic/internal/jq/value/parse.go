package value

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Reader reads one JSON value after the other.
type Reader struct {
	r         *bufio.Reader
	line, col int
	Newlines  int // of the whole input so far
	held      int64
	most      int64
	depth     int
}

// NewReader reads the JSON texts of r, each of at most most bytes.
func NewReader(r io.Reader, most int64) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), line: 1, most: most}
}

// SyntaxError is JSON that is wrong, with its place.
type SyntaxError struct{ msg string }

func (e *SyntaxError) Error() string { return e.msg }

func (d *Reader) bad(format string, args ...any) error {
	return &SyntaxError{fmt.Sprintf(format, args...) + fmt.Sprintf(" at line %d, column %d", d.line, d.col)}
}

func (d *Reader) byte() (byte, error) {
	c, err := d.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if d.held++; d.held > d.most {
		return 0, errors.New("memory exhausted")
	}
	d.col++
	if c == '\n' {
		d.line, d.col = d.line+1, 0
		d.Newlines++
	}
	return c, nil
}

func (d *Reader) back(c byte) {
	_ = d.r.UnreadByte()
	if d.col--; c == '\n' {
		d.line--
		d.Newlines--
	}
}

// skip goes over white space and reports what comes after it.
func (d *Reader) skip() (byte, error) {
	for {
		c, err := d.byte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0x1e:
		case 0xef: // a byte order mark
			if next, _ := d.r.Peek(2); string(next) == "\xbb\xbf" && d.held == 1 {
				_, _ = d.r.Discard(2)
				continue
			}
			return c, nil
		default:
			return c, nil
		}
	}
}

// Next is the next value; io.EOF after the last.
func (d *Reader) Next() (any, error) {
	d.held = min(d.held, 1)
	c, err := d.skip()
	if err != nil {
		return nil, err
	}
	v, err := d.Value(c)
	if errors.Is(err, io.EOF) {
		err = &SyntaxError{fmt.Sprintf("Unfinished JSON term at EOF at line %d, column %d", d.line, d.col)}
	}
	if err == nil {
		// A newline right after the value belongs to it, as jq counts lines.
		if c, e := d.byte(); e == nil && c != '\n' {
			d.back(c)
		}
	}
	return v, err
}

// Value reads the value that begins with c.
func (d *Reader) Value(c byte) (any, error) {
	switch {
	case c == '"':
		return d.text()
	case c == '[' || c == '{':
		if d.depth++; d.depth > Deepest {
			return nil, d.bad("Exceeds depth limit for parsing")
		}
		defer func() { d.depth-- }()
		if c == '[' {
			return d.array()
		}
		return d.object()
	case c == ']' || c == '}':
		return nil, d.bad("Unmatched '%c'", c)
	case c == ',':
		return nil, d.bad("Expected value before ','")
	case c == ':':
		return nil, d.bad("':' not as part of an object")
	}
	return d.word(c)
}

func (d *Reader) word(c byte) (any, error) {
	word := []byte{c}
	for {
		c, err := d.byte()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		if strings.IndexByte(" \t\r\n,:[]{}\"\x1e", c) >= 0 {
			d.back(c)
			break
		}
		word = append(word, c)
	}
	switch s := string(word); s {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "nan", "NaN":
		return math.NaN(), nil
	default:
		if v, ok := ParseNumber(s); ok {
			return v, nil
		}
		switch strings.ToLower(s) {
		case "infinity", "-infinity":
			return math.Copysign(math.MaxFloat64, float64(len("infinity")-len(s))+0.5), nil
		case "-nan", "nan":
			return math.NaN(), nil
		}
		if word[0] == '-' || word[0] >= '0' && word[0] <= '9' || len(s) > 5 || word[0] != 'n' && word[0] != 't' && word[0] != 'f' {
			return nil, d.bad("Invalid numeric literal")
		}
		return nil, d.bad("Invalid literal")
	}
}

// ParseNumber reads a number in JSON's notation, or a little beyond it as jq.
func ParseNumber(s string) (any, bool) {
	t := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if t == "" || strings.Trim(t, "0123456789.eE+-") != "" || t[0] == 'e' || t[0] == 'E' {
		return nil, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, false
	}
	if len(t) > 15 && strings.Trim(t, "0123456789") == "" {
		t = strings.TrimLeft(t, "0")
		if len(t) > 15 && !math.IsInf(f, 0) {
			if s[0] == '-' {
				t = "-" + t
			}
			return Literal{f, t}, true
		}
	}
	return f, true
}

func (d *Reader) text() (any, error) {
	var b []byte
	for {
		c, err := d.byte()
		if err != nil {
			return nil, err
		}
		switch c {
		case '"':
			return strings.ToValidUTF8(string(b), "\ufffd"), nil
		case '\\':
			if b, err = d.escape(b); err != nil {
				return nil, err
			}
		default:
			b = append(b, c)
		}
	}
}

func (d *Reader) escape(b []byte) ([]byte, error) {
	c, err := d.byte()
	if err != nil {
		return nil, err
	}
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[at]), nil
	}
	if c != 'u' {
		return nil, d.bad("Invalid escape")
	}
	r, err := d.hex()
	if err != nil {
		return nil, err
	}
	if r >= 0xd800 && r < 0xdc00 {
		if next, _ := d.r.Peek(2); string(next) == `\u` {
			_, _ = d.byte()
			_, _ = d.byte()
			low, err := d.hex()
			if err != nil {
				return nil, err
			}
			if low >= 0xdc00 && low < 0xe000 {
				return utf8.AppendRune(b, 0x10000+(r-0xd800)<<10+(low-0xdc00)), nil
			}
			b = utf8.AppendRune(b, utf8.RuneError)
			r = low
		}
	}
	return utf8.AppendRune(b, r), nil
}

func (d *Reader) hex() (rune, error) {
	var b [4]byte
	for i := range b {
		c, err := d.byte()
		if err != nil {
			return 0, err
		}
		b[i] = c
	}
	n, err := strconv.ParseUint(string(b[:]), 16, 32)
	if err != nil {
		return 0, d.bad("Invalid escape")
	}
	return rune(n), nil
}

func (d *Reader) array() (any, error) {
	out := []any{}
	for {
		c, err := d.skip()
		if err != nil {
			return nil, err
		}
		if c == ']' {
			if len(out) > 0 {
				return nil, d.bad("Expected another array element")
			}
			return out, nil
		}
		v, err := d.Value(c)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		d.held += 32
		if c, err = d.skip(); err != nil {
			return nil, err
		}
		switch c {
		case ']':
			return out[:len(out):len(out)], nil
		case ',':
		case '}':
			return nil, d.bad("Unmatched '}'")
		case ':':
			return nil, d.bad("':' not as part of an object")
		default:
			return nil, d.bad("Expected separator between values")
		}
		if c, err = d.skip(); err != nil {
			return nil, err
		}
		if c == ']' {
			return nil, d.bad("Expected another array element")
		}
		d.back(c)
	}
}

func (d *Reader) object() (any, error) {
	out := NewObject(0)
	for {
		c, err := d.skip()
		if err != nil {
			return nil, err
		}
		if c == '}' && out.Len() == 0 {
			return out, nil
		}
		if c == '}' {
			return nil, d.bad("Objects must consist of key:value pairs")
		}
		k, err := d.Value(c)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, d.bad("Object keys must be strings")
		}
		if c, err = d.skip(); err != nil {
			return nil, err
		}
		if c != ':' {
			return nil, d.bad("Objects must consist of key:value pairs")
		}
		if c, err = d.skip(); err != nil {
			return nil, err
		}
		if c == '}' || c == ',' {
			return nil, d.bad("Objects must consist of key:value pairs")
		}
		v, err := d.Value(c)
		if err != nil {
			return nil, err
		}
		out.Put(key, v)
		d.held += 100
		if c, err = d.skip(); err != nil {
			return nil, err
		}
		switch c {
		case '}':
			return out, nil
		case ',':
		case ']':
			return nil, d.bad("Unmatched ']'")
		default:
			return nil, d.bad("Expected separator between values")
		}
	}
}

// ParseJSON is fromjson.
func ParseJSON(s string) (any, error) {
	d := NewReader(strings.NewReader(s), math.MaxInt64)
	v, err := d.Next()
	if err == nil {
		if _, more := d.Next(); more == nil {
			err = &SyntaxError{fmt.Sprintf("Unexpected extra JSON values at line %d, column %d", d.line, d.col)}
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (while parsing '%s')", err, s)
	}
	return v, nil
}

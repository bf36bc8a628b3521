package diff

import (
	"bytes"
	"strings"
)

// Doc is one side of a comparison.
type Doc struct {
	name  string
	bytes []byte
	Lines [][]byte // with their newlines, which only the last may lack
	class []int    // the same number for lines that count as equal
}

// NewDoc splits b into lines.
func NewDoc(name string, b []byte) *Doc {
	d := &Doc{name: name, bytes: b}
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			n = len(b)
		}
		d.Lines = append(d.Lines, b[:n])
		b = b[n:]
	}
	return d
}

// Complete reports whether the line ends in a newline.
func Complete(line []byte) bool { return len(line) > 0 && line[len(line)-1] == '\n' }

// How lines are compared.
type Likeness struct {
	fold     bool // -i
	noSpace  bool // -w
	AnySpace bool // -b
	noTail   bool // -Z
	tabs     bool // -E
	noEnd    bool // a missing newline at the end is no difference
}

// Key is the same for lines that count as equal.
func (l Likeness) Key(line, buf []byte) []byte {
	text := bytes.TrimSuffix(line, []byte{'\n'})
	whole := len(text) != len(line) || l.noSpace || l.AnySpace || l.noTail || l.noEnd
	buf = buf[:0]
	switch {
	case l.noSpace:
		for _, b := range text {
			if !isSpace(b) {
				buf = append(buf, b)
			}
		}
	case l.AnySpace:
		buf = squeeze(text, buf)
	default:
		if l.noTail {
			text = bytes.TrimRight(text, " \t\r\v\f\n")
		}
		if buf = append(buf, text...); l.tabs {
			buf = append(buf[:0], expand(text)...)
		}
	}
	if l.fold {
		for i, b := range buf {
			if 'A' <= b && b <= 'Z' {
				buf[i] = b + 'a' - 'A'
			}
		}
	}
	if !whole {
		buf = append(buf, '\n')
	}
	return buf
}

func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// squeeze makes one space of each run, and nothing of the last.
func squeeze(text, buf []byte) []byte {
	space := false
	for _, b := range text {
		if isSpace(b) {
			space = true
			continue
		}
		if space {
			buf = append(buf, ' ')
		}
		space = false
		buf = append(buf, b)
	}
	return buf
}

const tabStop = 8

// expand writes spaces for tabs.
func expand(text []byte) []byte {
	var out []byte
	column := 0
	for _, b := range text {
		switch b {
		case '\t':
			n := tabStop - column%tabStop
			out = append(out, strings.Repeat(" ", n)...)
			column += n
		case '\b':
			out = append(out, b)
			column = max(column-1, 0)
		default:
			out = append(out, b)
			column++
		}
	}
	return out
}

// classify numbers the lines of both sides.
func classify(a, b *Doc, l Likeness) {
	classes := make(map[string]int, len(a.Lines))
	var buf []byte
	for _, d := range []*Doc{a, b} {
		d.class = make([]int, len(d.Lines))
		for i, line := range d.Lines {
			buf = l.Key(line, buf)
			c, ok := classes[string(buf)]
			if !ok {
				c = len(classes)
				classes[string(buf)] = c
			}
			d.class[i] = c
		}
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if _, rest, ok := strings.Cut(s, ": "); ok {
		return rest
	}
	return s
}

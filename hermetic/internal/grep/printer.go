package grep

import (
	"bufio"
	"fmt"
	"io"
)

// printer writes lines as grep does.
type printer struct {
	w     *bufio.Writer
	lines bool // something was printed, so that a separator may come
}

func newPrinter(w io.Writer) *printer { return &printer{w: bufio.NewWriterSize(w, 32<<10)} }

func (p *printer) flush() error { return p.w.Flush() }

// text writes s; what goes wrong shows when the rest is flushed.
func (p *printer) text(s string) { _, _ = p.w.WriteString(s) }

// The colors of GREP_COLORS by default.
const (
	colorMatch = "01;31"
	colorName  = "35"
	colorOther = "32" // numbers of lines and bytes
	colorPunct = "36"
)

func (p *printer) colored(on bool, color, s string) {
	if on {
		s = "\x1b[" + color + "m\x1b[K" + s + "\x1b[m\x1b[K"
	}
	p.text(s)
}

// name writes the name of the file and what parts it from the rest.
func (p *printer) name(o *options, name string, sep byte) {
	if !o.named {
		return
	}
	p.colored(o.color, colorName, name)
	if o.null {
		p.text("\x00")
		return
	}
	p.colored(o.color, colorPunct, string(sep))
}

// listed writes the name of a file for -l and -L.
func (p *printer) listed(o *options, name string) {
	p.colored(o.color, colorName, name)
	if o.null {
		p.text("\x00")
		return
	}
	p.text("\n")
}

func (p *printer) separator(o *options) {
	p.colored(o.color, colorPunct, o.separator)
	p.text("\n")
}

// head writes what stands before a line.
func (p *printer) head(s *scan, sep byte, offset int64, length int) {
	o := &s.o
	if !o.heading {
		p.name(o, s.name, sep)
	}
	if o.lineNumber {
		p.colored(o.color, colorOther, fmt.Sprintf("%*d", s.width, s.number))
		p.colored(o.color, colorPunct, string(sep))
	}
	if o.byteOffset {
		p.colored(o.color, colorOther, fmt.Sprintf("%*d", s.width, offset))
		p.colored(o.color, colorPunct, string(sep))
	}
	if length > 0 && o.tab && (o.named || o.lineNumber || o.byteOffset) {
		p.text("\t")
	}
}

// line writes one line, or with -o the parts of it that match.
func (p *printer) line(s *scan, line []byte, start, end int, selected bool) error {
	o := &s.o
	sep := byte('-')
	if selected {
		sep = ':'
	}
	if o.only {
		if selected && !o.invert {
			if err := p.parts(s, line, start, end); err != nil {
				return err
			}
		}
	} else {
		p.head(s, sep, s.offset, len(line))
		if err := p.body(s, line, start, end); err != nil {
			return err
		}
		_ = p.w.WriteByte(s.end())
	}
	if o.lineBuffered {
		return p.flush()
	}
	return p.failed()
}

// failed reports a write that went wrong before.
func (p *printer) failed() error {
	_, err := p.w.Write(nil)
	return err
}

// parts writes every part that matches, each on a line.
func (p *printer) parts(s *scan, line []byte, start, end int) error {
	for start >= 0 {
		if end > start && s.text(line[start:end]) {
			p.head(s, ':', s.offset+int64(start), end-start)
			p.colored(s.o.color, colorMatch, string(line[start:end]))
			_ = p.w.WriteByte(s.end())
		}
		next, ok := s.advance(line, start, end)
		if !ok {
			return nil
		}
		var err error
		if start, end, err = s.m.next(line, next); err != nil {
			return err
		}
	}
	return nil
}

// advance is where to look for the next match.
func (s *scan) advance(line []byte, start, end int) (int, bool) {
	if end > start {
		return end, true
	}
	if start >= len(line) {
		return 0, false
	}
	return start + s.m.width(line[start:]), true
}

// body writes the line itself, its matches in color.
func (p *printer) body(s *scan, line []byte, start, end int) error {
	if !s.o.color || start < 0 || s.o.invert {
		_, err := p.w.Write(line)
		return err
	}
	at := 0
	for start >= 0 {
		if end > start {
			_, _ = p.w.Write(line[at:start])
			p.colored(true, colorMatch, string(line[start:end]))
			at = end
		}
		next, ok := s.advance(line, start, end)
		if !ok {
			break
		}
		var err error
		if start, end, err = s.m.next(line, next); err != nil {
			return err
		}
	}
	_, err := p.w.Write(line[at:])
	return err
}

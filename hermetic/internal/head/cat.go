package head

import (
	"errors"
	"fmt"
	"io"

	"egressd/hermetic/internal/gnu"
)

// shower is what cat's options ask for.
type shower struct {
	number, nonblank, squeeze, ends, tabs, visible bool

	count  int64
	blanks int  // blank lines just before
	inside bool // the last line had no newline yet
	cr     bool // it ended with a carriage return
}

func cat(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "A,show-all b,number-nonblank e E,show-ends n,number s,squeeze-blank t T,show-tabs u v,show-nonprinting")
	if !ok {
		return
	}
	var s shower
	for _, o := range sets {
		switch o.Name {
		case "show-all":
			s.visible, s.ends, s.tabs = true, true, true
		case "number-nonblank":
			s.nonblank = true
		case "e":
			s.visible, s.ends = true, true
		case "show-ends":
			s.ends = true
		case "number":
			s.number = true
		case "squeeze-blank":
			s.squeeze = true
		case "t":
			s.visible, s.tabs = true, true
		case "show-tabs":
			s.tabs = true
		case "show-nonprinting":
			s.visible = true
		}
	}
	w.EachFile(operands, func(_ string, r io.Reader) error {
		if s == (shower{}) {
			return catPlain(w, r)
		}
		lines := w.Lines(r, '\n')
		for {
			line, err := lines.Next()
			if err != nil {
				return err
			}
			if !s.line(w, line) {
				return gnu.Stop()
			}
		}
	})
	if s.cr && !s.visible {
		w.Out.WriteByte('\r')
	}
}

// catPlain copies each read at once, as cat does: its reader may be waiting.
func catPlain(w *gnu.Work, r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			w.Out.Write(buf[:n])
			if w.Out.Flush() != nil {
				return gnu.Stop()
			}
		}
		if err != nil {
			return err
		}
		if n == 0 && w.Ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
}

// line writes one line; a last line without a newline goes on in the next file.
func (s *shower) line(w *gnu.Work, line []byte) bool {
	ended := line[len(line)-1] == '\n'
	if ended {
		line = line[:len(line)-1]
	}
	if s.cr && !s.visible {
		if ended && len(line) == 0 && s.ends {
			w.Out.WriteString("^M")
		} else {
			w.Out.WriteByte('\r')
		}
		s.cr = false
	}
	if !s.inside {
		blank := len(line) == 0 && ended
		if blank {
			s.blanks++
		} else {
			s.blanks = 0
		}
		if blank && s.squeeze && s.blanks > 1 {
			return true
		}
		if s.nonblank && !blank || s.number && !s.nonblank {
			s.count++
			fmt.Fprintf(w.Out, "%6d\t", s.count)
		}
	}
	s.text(w, line, ended)
	if ended {
		if s.ends {
			w.Out.WriteByte('$')
		}
		w.Out.WriteByte('\n')
	}
	s.inside = !ended
	_, err := w.Out.Write(nil)
	return err == nil
}

func (s *shower) text(w *gnu.Work, line []byte, ended bool) {
	for i, c := range line {
		switch {
		case c == '\t' && s.tabs:
			w.Out.WriteString("^I")
		case c == '\r' && s.ends && !s.visible && i == len(line)-1:
			if s.cr = !ended; ended {
				w.Out.WriteString("^M")
			}
		case !s.visible || c == '\t':
			w.Out.WriteByte(c)
		default:
			writeVisible(w.Out, c)
		}
	}
}

// writeVisible writes c in the ^ and M- notation.
func writeVisible(out io.ByteWriter, c byte) {
	if c >= 0x80 {
		_ = out.WriteByte('M')
		_ = out.WriteByte('-')
		c -= 0x80
	}
	switch {
	case c < 0x20:
		_ = out.WriteByte('^')
		_ = out.WriteByte(c + '@')
	case c == 0x7f:
		_ = out.WriteByte('^')
		_ = out.WriteByte('?')
	default:
		_ = out.WriteByte(c)
	}
}

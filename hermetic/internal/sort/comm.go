package sort

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// commWant is comm's options; columns are lines of the first file alone, of
// the second alone, and of both.
type commWant struct {
	hide  [3]bool
	sep   string
	end   byte
	total bool
	check int // 1 always, -1 never, 0 when a line has no match
	n     [3]int64
	seen  bool // an unpaired line
	named [2]bool
}

func comm(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... FILE1 FILE2", "1 2 3 ,check-order ,nocheck-order ,output-delimiter: ,total z,zero-terminated")
	if !ok {
		return
	}
	c := commWant{sep: "\t", end: '\n'}
	for _, o := range sets {
		switch o.Name {
		case "1", "2", "3":
			c.hide[o.Name[0]-'1'] = true
		case "check-order":
			c.check = 1
		case "nocheck-order":
			c.check = -1
		case "output-delimiter":
			if c.sep = o.Value; c.sep == "" {
				c.sep = "\x00"
			}
		case "total":
			c.total = true
		case "zero-terminated":
			c.end = 0
		}
	}
	switch {
	case len(operands) == 0:
		w.TryHelp("missing operand")
		return
	case len(operands) == 1:
		w.TryHelp("missing operand after %s", gnu.Quote(operands[0]))
		return
	case w.Extra(operands, 2):
		return
	}
	var in [2]*gnu.Lines
	for i, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
			return
		}
		defer r.Close()
		in[i] = w.Lines(r, c.end)
	}
	c.run(w, operands, in)
}

// run goes through both files side by side.
func (c *commWant) run(w *gnu.Work, names []string, in [2]*gnu.Lines) {
	var line, prev, older [2][]byte
	var err [2]error
	next := func(i int) bool {
		older[i], prev[i] = prev[i], line[i]
		var text []byte
		if text, err[i] = in[i].Text(); err[i] != nil {
			line[i] = nil
			if !errors.Is(err[i], io.EOF) && w.Ctx.Err() == nil {
				w.Die(1, "%s: %s", gnu.QuoteName(names[i]), command.Reason(err[i]))
				return false
			}
			return older[i] == nil || prev[i] == nil || bytes.Compare(older[i], prev[i]) <= 0 || c.disorder(w, i)
		}
		line[i] = append([]byte{}, text...)
		return prev[i] == nil || bytes.Compare(prev[i], line[i]) <= 0 || c.disorder(w, i)
	}
	if !next(0) || !next(1) {
		return
	}
	for err[0] == nil || err[1] == nil {
		d := 0
		switch {
		case err[0] != nil:
			d = 1
		case err[1] != nil:
			d = -1
		default:
			d = bytes.Compare(line[0], line[1])
		}
		column := map[int]int{-1: 0, 1: 1, 0: 2}[max(-1, min(1, d))]
		c.seen = c.seen || column < 2
		at := max(0, column%2)
		if !c.write(w, column, line[at]) {
			return
		}
		if d <= 0 && !next(0) || d >= 0 && !next(1) {
			return
		}
	}
	if c.total {
		fmt.Fprintf(w.Out, "%d%s%d%s%d%stotal%c", c.n[0], c.sep, c.n[1], c.sep, c.n[2], c.sep, c.end)
	}
	if c.named[0] || c.named[1] {
		w.Fault("input is not in sorted order")
	}
}

// disorder complains once for each file; it reports whether to go on.
func (c *commWant) disorder(w *gnu.Work, i int) bool {
	if c.check < 0 || c.check == 0 && !c.seen || c.named[i] {
		return true
	}
	c.named[i] = true
	w.Fault("file %d is not in sorted order", i+1)
	return c.check == 0
}

func (c *commWant) write(w *gnu.Work, column int, line []byte) bool {
	c.n[column]++
	if c.hide[column] {
		return w.Ctx.Err() == nil
	}
	for i := range column {
		if !c.hide[i] {
			w.Out.WriteString(c.sep)
		}
	}
	w.Out.Write(line)
	return w.Out.WriteByte(c.end) == nil
}

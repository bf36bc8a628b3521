package text

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
)

// csplitter cuts a file at lines.
type csplitter struct {
	prefix, suffix               string
	digits                       int
	keep, quiet, elide, suppress bool

	lines [][]byte
	at    int // the next line to write
	files []string
	from  int // after a match at this line the next search begins
}

func csplit(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... FILE PATTERN...", "b:,suffix-format: f:,prefix: k,keep-files ,suppress-matched n:,digits: q,quiet s,silent z,elide-empty-files")
	if !ok {
		return
	}
	c := csplitter{prefix: "xx", digits: 2}
	for _, o := range sets {
		switch o.Name {
		case "suffix-format":
			c.suffix = o.Value
		case "prefix":
			c.prefix = o.Value
		case "keep-files":
			c.keep = true
		case "suppress-matched":
			c.suppress = true
		case "digits":
			n, err := strconv.ParseUint(o.Value, 10, 8)
			if err != nil {
				w.Die(1, "invalid number: %s", gnu.Quote(o.Value))
				return
			}
			c.digits = int(n)
		case "quiet", "silent":
			c.quiet = true
		case "elide-empty-files":
			c.elide = true
		}
	}
	if len(operands) < 2 {
		if len(operands) == 0 {
			w.TryHelp("missing operand")
		} else {
			w.TryHelp("missing operand after %s", gnu.Quote(operands[0]))
		}
		return
	}
	if !c.read(w, operands[0]) {
		return
	}
	for i := 1; i < len(operands); i++ {
		again := int64(0)
		if i+1 < len(operands) {
			if n, ok := csplitRepeat(operands[i+1]); ok {
				again = n
			}
		}
		if !c.pattern(w, operands[i], again) {
			c.undo(w)
			return
		}
		if again != 0 {
			i++
		}
	}
	if !c.write(w, len(c.lines)) {
		c.undo(w)
	}
}

// csplitRepeat reads "{3}" and "{*}" (-1).
func csplitRepeat(s string) (int64, bool) {
	inner, ok := strings.CutPrefix(s, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return 0, false
	}
	if inner == "*" {
		return -1, true
	}
	n, err := strconv.ParseUint(inner, 10, 31)
	return int64(n), err == nil
}

func (c *csplitter) read(w *gnu.Work, name string) bool {
	r, err := w.Open(name)
	if err != nil {
		w.Die(1, "cannot open %s for reading: %s", gnu.QuoteShell(name), command.Reason(err))
		return false
	}
	defer r.Close()
	all, err := w.All(r)
	if err != nil {
		w.Die(1, "read error: %s", command.Reason(err))
		return false
	}
	c.lines = bytes.SplitAfter(all, []byte{'\n'})
	if n := len(c.lines); len(c.lines[n-1]) == 0 {
		c.lines = c.lines[:n-1]
	}
	return true
}

// pattern does one pattern, and again as often; -1: to the end.
func (c *csplitter) pattern(w *gnu.Work, p string, again int64) bool {
	if p != "" && (p[0] == '/' || p[0] == '%') {
		return c.search(w, p, again)
	}
	n, err := strconv.ParseUint(p, 10, 31)
	if err != nil {
		w.Die(1, "%s: invalid pattern", gnu.Quote(p))
		return false
	}
	if n == 0 {
		w.Die(1, "%s: line number must be greater than zero", p)
		return false
	}
	for k := int64(0); again < 0 || k <= again; k++ {
		line := int(n) * int(k+1)
		if line-1 > len(c.lines) || line-1 == len(c.lines) && again >= 0 {
			if again < 0 {
				return true
			}
			_ = c.write(w, len(c.lines))
			on := ""
			if k > 0 {
				on = fmt.Sprintf(" on repetition %d", k)
			}
			w.Die(1, "%s: line number out of range%s", gnu.Quote(p), on)
			return false
		}
		if !c.write(w, line-1) {
			return false
		}
		if c.suppress {
			c.at++
		}
		c.from = c.at
	}
	return true
}

// search is /RE/OFFSET, or %RE%OFFSET which writes nothing.
func (c *csplitter) search(w *gnu.Work, p string, again int64) bool {
	end := strings.LastIndexByte(p, p[0])
	if end == 0 {
		w.Die(1, "%s: closing delimiter '%c' missing", p, p[0])
		return false
	}
	offset := 0
	if text := p[end+1:]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			w.Die(1, "%s: integer expected after delimiter", p)
			return false
		}
		offset = n
	}
	re, err := regex.Compile(p[1:end], regex.Options{Syntax: regex.Basic, Steps: w.Budget.Steps})
	if err != nil {
		w.Die(1, "%s: invalid regular expression: %s", p, err)
		return false
	}
	for k := int64(0); again < 0 || k <= again; k++ {
		at := c.from
		for ; at < len(c.lines); at++ {
			found, err := re.Match(bytes.TrimSuffix(c.lines[at], []byte{'\n'}))
			if err != nil {
				w.Die(1, "%s", err)
				return false
			}
			if found {
				break
			}
		}
		if at == len(c.lines) {
			if again < 0 {
				return true
			}
			if p[0] == '/' {
				_ = c.write(w, len(c.lines))
			}
			on := ""
			if k > 0 {
				on = fmt.Sprintf(" on repetition %d", k)
			}
			w.Die(1, "%s: match not found%s", gnu.Quote(p), on)
			return false
		}
		c.from = at + 1
		stop := at + offset
		if stop < c.at || stop > len(c.lines) {
			w.Die(1, "%s: line number out of range", gnu.Quote(p))
			return false
		}
		if p[0] == '%' {
			c.at = stop
		} else if !c.write(w, stop) {
			return false
		}
		if c.suppress {
			c.at = min(c.at+1, len(c.lines))
		}
		c.from = max(c.from, c.at)
	}
	return true
}

// write makes the next file of the lines up to end.
func (c *csplitter) write(w *gnu.Work, end int) bool {
	end = max(c.at, end)
	text := bytes.Join(c.lines[c.at:end], nil)
	c.at = end
	if len(text) == 0 && c.elide {
		return true
	}
	name := c.prefix + fmt.Sprintf("%0*d", c.digits, len(c.files))
	if c.suffix != "" {
		name = c.prefix + fmt.Sprintf(c.suffix, len(c.files))
	}
	f, err := w.Create(name, false)
	if err == nil {
		c.files = append(c.files, name)
		_, err = f.Write(text)
		_ = f.Close()
	}
	if err != nil {
		w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
		return false
	}
	if !c.quiet {
		_, err = io.WriteString(w.Out, strconv.Itoa(len(text))+"\n")
	}
	return err == nil
}

// undo removes the files after a failure.
func (c *csplitter) undo(w *gnu.Work) {
	if c.keep {
		return
	}
	for _, name := range c.files {
		_ = w.FS.Remove(w.Path(name))
	}
}

// look writes the lines that begin with a string, of a sorted file.
func look(w *gnu.Work) {
	sets, operands, ok := w.Options("[options] <string> [<file>...]", "a,alternative d,alphanum f,ignore-case t:,terminate:")
	if !ok {
		return
	}
	fold, alnum, until := false, false, ""
	for _, o := range sets {
		switch o.Name {
		case "ignore-case":
			fold = true
		case "alphanum":
			alnum = true
		case "terminate":
			until = o.Value
		}
	}
	if len(operands) != 2 {
		w.TryHelp("a string and a file are needed")
		return
	}
	shape := func(b []byte) []byte {
		if alnum {
			b = bytes.Map(func(r rune) rune {
				if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') || r == ' ' || r == '\t' {
					return r
				}
				return -1
			}, b)
		}
		if fold {
			b = asciiUpper(b)
		}
		return b
	}
	prefix := operands[0]
	if at := strings.IndexAny(prefix, until); until != "" && at >= 0 {
		prefix = prefix[:at+1]
	}
	want, found := shape([]byte(prefix)), false
	w.EachLine(operands[1:], '\n', func(line []byte) bool {
		if bytes.HasPrefix(shape(line), want) {
			found = true
			w.Out.Write(line)
		}
		return true
	})
	if !found {
		w.Status = max(w.Status, 1)
	}
}

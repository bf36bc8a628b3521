package cut

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// fold counts columns by bytes, as the real one does.
func fold(w *gnu.Work) {
	w.Args = foldObsolete(w.Args)
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "b,bytes s,spaces w:,width:")
	if !ok {
		return
	}
	width, whole, spaces := 80, false, false
	for _, o := range sets {
		switch o.Name {
		case "bytes":
			whole = true
		case "spaces":
			spaces = true
		case "width":
			n, err := strconv.ParseUint(o.Value, 10, 62)
			if err != nil || n == 0 {
				why := ""
				if n == 0 && err == nil {
					why = ": Numerical result out of range"
				}
				w.Die(1, "invalid number of columns: %s%s", gnu.Quote(o.Value), why)
				return
			}
			width = int(n)
		}
	}
	w.EachLine(operands, '\n', func(line []byte) bool {
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		foldLine(w, text, width, whole, spaces)
		if ended {
			w.Out.WriteByte('\n')
		}
		_, err := w.Out.Write(nil)
		return err == nil
	})
}

// foldObsolete turns "-20" into "-w20".
func foldObsolete(args []string) []string {
	out := append([]string{}, args...)
	for i, a := range out {
		if a == "--" {
			break
		}
		if i > 0 && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" && out[i-1] != "-w" {
			out[i] = "-w" + a[1:]
		}
	}
	return out
}

func advance(column int, c byte, whole bool) int {
	if whole {
		return column + 1
	}
	switch c {
	case '\b':
		return max(0, column-1)
	case '\r':
		return 0
	case '\t':
		return column + 8 - column%8
	}
	return column + 1
}

func foldLine(w *gnu.Work, text []byte, width int, whole, spaces bool) {
	from, column := 0, 0
	for i := 0; i < len(text); i++ {
		next := advance(column, text[i], whole)
		if next <= width || i == from {
			column = next
			continue
		}
		cut := i
		if spaces {
			if at := bytes.LastIndexAny(text[from:i], " \t"); at >= 0 {
				cut = from + at + 1
			}
		}
		w.Out.Write(text[from:cut])
		if w.Out.WriteByte('\n') != nil {
			return
		}
		from, column = cut, 0
		for _, c := range text[cut:i] {
			column = advance(column, c, whole)
		}
		i--
	}
	w.Out.Write(text[from:])
}

// tabStops are where tabs lead.
type tabStops struct {
	at    []int
	every int // beyond the list; 0: a tab is one space there
	from  int // every counts from here
	kind  byte
}

// next is the stop after column; ok is false beyond the last.
func (t tabStops) next(column int) (stop int, ok bool) {
	for _, s := range t.at {
		if s > column {
			return s, true
		}
	}
	if t.every == 0 {
		return column + 1, false
	}
	return column + t.every - (column-t.from)%t.every, true
}

func parseTabs(w *gnu.Work, list string, t *tabStops) bool {
	for _, f := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		digits := strings.TrimLeft(f, "/+")
		n, err := strconv.ParseUint(digits, 10, 31)
		switch {
		case f == "/" || f == "+":
			continue
		case t.every > 0:
			w.Die(1, "'%c' specifier only allowed with the last value", t.kind)
			return false
		case err != nil && strings.Trim(digits, "0123456789") == "" && digits != "":
			w.Die(1, "tab stop is too large %s", gnu.Quote(f))
			return false
		case err != nil:
			w.Die(1, "tab size contains invalid character(s): %s", gnu.Quote(strings.TrimLeft(f, "0123456789")))
			return false
		case n == 0 && f == digits:
			w.Die(1, "tab size cannot be 0")
			return false
		case f[0] == '/':
			t.every, t.kind = int(n), '/'
			continue
		case f[0] == '+':
			t.every, t.kind = int(n), '+'
			if len(t.at) > 0 {
				t.from = t.at[len(t.at)-1]
			}
			continue
		case len(t.at) > 0 && int(n) <= t.at[len(t.at)-1]:
			w.Die(1, "tab sizes must be ascending")
			return false
		}
		t.at = append(t.at, int(n))
	}
	return true
}

// settle makes one number a distance.
func (t *tabStops) settle() {
	switch {
	case len(t.at) == 0 && t.every == 0:
		t.every = 8
	case len(t.at) == 1 && t.every == 0:
		t.every, t.at = t.at[0], nil
	}
}

// digitTabs turns "-4" into "-t 4".
func digitTabs(w *gnu.Work, option string) {
	args := append([]string{}, w.Args...)
	for i, a := range args {
		if i > 0 && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789,") == "" && args[i-1] != "-t" {
			args[i] = option + a[1:]
		}
	}
	w.Args = args
}

func expand(w *gnu.Work) {
	digitTabs(w, "-t")
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "i,initial t:,tabs:")
	if !ok {
		return
	}
	var t tabStops
	initial := false
	for _, o := range sets {
		if o.Name == "initial" {
			initial = true
		} else if !parseTabs(w, o.Value, &t) {
			return
		}
	}
	t.settle()
	w.EachLine(operands, '\n', func(line []byte) bool {
		column, leading := 0, true
		for _, c := range line {
			switch {
			case c == '\t' && (leading || !initial):
				stop, _ := t.next(column)
				io.WriteString(w.Out, strings.Repeat(" ", stop-column))
				column = stop
				continue
			case c == '\b':
				column = max(0, column-1)
			default:
				column++
			}
			leading = leading && (c == ' ' || c == '\t')
			if w.Out.WriteByte(c) != nil {
				return false
			}
		}
		return true
	})
}

func unexpand(w *gnu.Work) {
	digitTabs(w, "--digits=")
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "a,all ,first-only t:,tabs: ,digits:")
	if !ok {
		return
	}
	var t tabStops
	all, first := false, false
	for _, o := range sets {
		switch o.Name {
		case "all":
			all = true
		case "first-only":
			first = true
		default:
			all = all || o.Name == "tabs" // digits alone do not ask for all
			if !parseTabs(w, o.Value, &t) {
				return
			}
		}
	}
	t.settle()
	all = all && !first
	w.EachLine(operands, '\n', func(line []byte) bool {
		unexpandLine(w, line, t, all)
		_, err := w.Out.Write(nil)
		return err == nil
	})
}

// unexpandLine turns blanks that reach a tab stop into a tab; a single space
// before a stop stays unless more blanks follow.
func unexpandLine(w *gnu.Work, line []byte, t tabStops, all bool) {
	column, convert := 0, true
	var pending []byte
	oneBlank, prevBlank := false, true
	for _, c := range line {
		if convert && (c == ' ' || c == '\t') {
			stop, ok := t.next(column)
			if !ok {
				convert = false
			} else if c == '\t' {
				column = stop
				if len(pending) > 0 {
					pending[0] = '\t'
				}
				pending = pending[:min(len(pending), map[bool]int{true: 1}[oneBlank])]
			} else {
				column++
				if !(prevBlank && column == stop) {
					if column == stop {
						oneBlank = true
					}
					pending = append(pending, c)
					prevBlank = true
					continue
				}
				if len(pending) == 0 {
					pending = append(pending, '\t')
				}
				pending[0] = '\t'
				c = '\t'
				pending = pending[:map[bool]int{true: 1}[oneBlank]]
			}
		} else if c == '\b' {
			column = max(0, column-1)
		} else {
			column++
		}
		if len(pending) > 0 {
			if len(pending) > 1 && oneBlank {
				pending[0] = '\t'
			}
			w.Out.Write(pending)
			pending, oneBlank = pending[:0], false
		}
		prevBlank = c == ' ' || c == '\t'
		convert = convert && (all || prevBlank)
		w.Out.WriteByte(c)
	}
	w.Out.Write(pending)
}

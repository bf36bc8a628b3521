package cut

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// columnWant is column's options, as util-linux has them.
type columnWant struct {
	width     int
	table     bool
	rowsFirst bool // -x
	keepEmpty bool
	seps      string
	greedy    bool
	out       string
	names     []string
	right     string
	limit     int
}

func column(w *gnu.Work) {
	sets, operands, ok := w.Options("[options] [<file>...]", "c:,output-width: t,table s:,separator: o:,output-separator: x,fillrows L,keep-empty-lines N:,table-columns: R:,table-right: l:,table-columns-limit: e,table-header-repeat n:,table-name: d,table-noheadings J,json O:,table-order: H:,table-hide: T:,table-truncate: W:,table-wrap: E:,table-noextreme:")
	if !ok {
		return
	}
	c := columnWant{width: 80, seps: " \t", greedy: true, out: "  "}
	if n, err := strconv.Atoi(w.Getenv("COLUMNS")); err == nil && n > 0 {
		c.width = n
	}
	for _, o := range sets {
		switch o.Name {
		case "output-width":
			n, err := strconv.Atoi(o.Value)
			if o.Value == "unlimited" {
				n, err = 1<<30, nil
			}
			if err != nil || n < 0 {
				w.Die(1, "invalid columns argument: '%s'", o.Value)
				return
			}
			c.width = n
		case "table":
			c.table = true
		case "separator":
			c.seps, c.greedy = o.Value, false
		case "output-separator":
			c.out = o.Value
		case "fillrows":
			c.rowsFirst = true
		case "keep-empty-lines":
			c.keepEmpty = true
		case "table-columns":
			c.names = strings.Split(o.Value, ",")
		case "table-right":
			c.right = o.Value
		case "table-columns-limit":
			c.limit, _ = strconv.Atoi(o.Value)
		case "table-noheadings":
			c.names = nil
		case "table-name", "table-header-repeat":
		default:
			w.Refuse("--" + o.Name)
			return
		}
	}
	lines, ok := c.read(w, operands)
	if !ok || len(lines) == 0 {
		return
	}
	if c.table {
		c.writeTable(w, lines)
		return
	}
	c.fill(w, lines)
}

func (c *columnWant) read(w *gnu.Work, operands []string) ([]string, bool) {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	var lines []string
	size := int64(0)
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Fault("%s: %s", name, command.Reason(err))
			continue
		}
		in := w.Lines(r, '\n')
		for {
			text, err := in.Text()
			if err != nil {
				if !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
					w.Fault("%s: %s", name, command.Reason(err))
				}
				break
			}
			if size += int64(len(text)) + 32; size > w.Most() {
				w.Die(1, "memory exhausted")
				_ = r.Close()
				return nil, false
			}
			if c.keepEmpty || len(bytes.Trim(text, " \t\r\v\f")) > 0 {
				lines = append(lines, string(text))
			}
		}
		_ = r.Close()
	}
	return lines, true
}

func displayWidth(s string) int {
	n := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			n += 4 // shown as \xff
		} else {
			n += gnu.Width(r)
		}
		s = s[size:]
	}
	return n
}

// fill writes the entries in as many columns as fit, eight columns a step.
func (c *columnWant) fill(w *gnu.Work, entries []string) {
	longest := 0
	for _, e := range entries {
		longest = max(longest, displayWidth(e))
	}
	step := (longest + 8) / 8 * 8
	columns := max(1, c.width/step)
	if longest >= c.width {
		columns = 1
	}
	rows := (len(entries) + columns - 1) / columns
	if columns == 1 {
		for _, e := range entries {
			w.Out.WriteString(e + "\n")
		}
		return
	}
	for row := range rows {
		at, want := 0, 0
		for col := range columns {
			i := col*rows + row
			if c.rowsFirst {
				i = row*columns + col
			}
			if i >= len(entries) {
				break
			}
			for at < want {
				w.Out.WriteByte('\t')
				at = (at + 8) / 8 * 8
			}
			w.Out.WriteString(entries[i])
			at += displayWidth(entries[i])
			want += step
		}
		if w.Out.WriteByte('\n') != nil {
			return
		}
	}
}

func (c *columnWant) cells(line string) []string {
	isSep := func(r rune) bool { return strings.ContainsRune(c.seps, r) }
	var cells []string
	if c.greedy {
		cells = strings.FieldsFunc(line, isSep)
	} else {
		for {
			at := strings.IndexFunc(line, isSep)
			if at < 0 {
				break
			}
			_, n := utf8.DecodeRuneInString(line[at:])
			cells, line = append(cells, line[:at]), line[at+n:]
		}
		cells = append(cells, line)
	}
	if c.limit > 0 && len(cells) > c.limit && c.greedy {
		rest := strings.TrimLeft(line, c.seps)
		for range c.limit - 1 {
			rest = strings.TrimLeft(rest[strings.IndexFunc(rest, isSep):], c.seps)
		}
		cells = append(cells[:c.limit-1], rest)
	}
	return cells
}

// writeTable lines the cells up; the last column is not padded.
func (c *columnWant) writeTable(w *gnu.Work, lines []string) {
	var rows [][]string
	if c.names != nil {
		rows = append(rows, c.names)
	}
	for _, l := range lines {
		rows = append(rows, c.cells(l))
	}
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	right := c.rightColumns(len(widths))
	for _, r := range rows {
		if len(r) == 0 {
			w.Out.WriteByte('\n')
			continue
		}
		for i := range widths {
			cell := ""
			if i < len(r) {
				cell = r[i]
			}
			pad := strings.Repeat(" ", widths[i]-displayWidth(cell))
			last := i == len(widths)-1
			switch {
			case right[i]:
				w.Out.WriteString(pad + cell)
			case last:
				w.Out.WriteString(cell)
			default:
				w.Out.WriteString(cell + pad)
			}
			if !last {
				w.Out.WriteString(c.out)
			}
		}
		if w.Out.WriteByte('\n') != nil || w.Ctx.Err() != nil {
			return
		}
	}
}

// rightColumns are those of -R, by number or name.
func (c *columnWant) rightColumns(n int) []bool {
	right := make([]bool, n)
	for _, f := range strings.Split(c.right, ",") {
		if i, err := strconv.Atoi(f); err == nil && i > 0 && i <= n {
			right[i-1] = true
		}
		for i, name := range c.names {
			if name == f && i < n {
				right[i] = true
			}
		}
	}
	return right
}

package diff

import (
	"bytes"
	"fmt"
	"strings"
)

// hunks writes the changes with lines around them, those that are near in one.
func (p *printer) hunks(all []change) {
	for len(all) > 0 {
		n, told := 1, !all[0].ignored
		for n < len(all) {
			near := 2*p.context + 1
			if all[n].ignored {
				near = p.context
			}
			if all[n].x-(all[n-1].x+all[n-1].del) >= near {
				break
			}
			told = told || !all[n].ignored
			n++
		}
		if told {
			p.begin()
			h := p.hunk(all[:n])
			if p.style == unified {
				p.unified(h)
			} else {
				p.contextual(h)
			}
		}
		all = all[n:]
	}
}

// hunk is a run of changes and the lines [x, xEnd) and [y, yEnd) to show.
type hunk struct {
	changes           []change
	x, xEnd, y, yEnd  int
	function          string
	deletes, inserted bool
}

func (p *printer) hunk(changes []change) hunk {
	first, last := changes[0], changes[len(changes)-1]
	lead := min(p.context, first.x, first.y)
	xEnd, yEnd := last.x+last.del, last.y+last.ins
	tail := min(p.context, len(p.a.Lines)-xEnd, len(p.b.Lines)-yEnd)
	h := hunk{changes: changes, x: first.x - lead, y: first.y - lead, xEnd: xEnd + tail, yEnd: yEnd + tail}
	for _, c := range changes {
		h.deletes, h.inserted = h.deletes || c.del > 0, h.inserted || c.ins > 0
	}
	if p.function != nil {
		h.function = p.functionAbove(h.x)
	}
	return h
}

// functionAbove is the last line before line x that begins a function.
func (p *printer) functionAbove(x int) string {
	for i := x - 1; i >= p.lastFn; i-- {
		text := bytes.TrimSuffix(p.a.Lines[i], []byte{'\n'})
		if ok, err := p.differ.function.Match(text); ok && err == nil {
			text = bytes.TrimLeft(text, " \t\r\v\f")
			p.fn = strings.TrimRight(string(text[:min(len(text), 40)]), " \t\r\v\f")
			break
		}
	}
	p.lastFn = max(x, p.lastFn)
	return p.fn
}

// begin writes the names, once.
func (p *printer) begin() {
	if p.begun {
		return
	}
	p.begun = true
	marks := [2]string{"***", "---"}
	if p.style == unified {
		marks = [2]string{"---", "+++"}
	}
	for i, f := range []file{p.x, p.y} {
		head := Escape(f.name) + "\t" + p.stamp(f)
		if i < len(p.labels) {
			head = p.labels[i]
		}
		open, shut := "", ""
		if p.color {
			open, shut = "\x1b[1m", "\x1b[0m"
		}
		Writef(p.Out, "%s%s %s%s\n", open, marks[i], head, shut)
	}
}

// Escape quotes a name as C does when it has characters that a patch cannot
// hold.
func Escape(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r == '"' || r == '\\' || r >= '\a' && r <= '\r' }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c >= '\a' && c <= '\r':
			b.Write([]byte{'\\', "abtnvfr"[c-'\a']})
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// UnifiedRange is "line,count", where a count of 1 is left out and an empty
// range names the line before.
func UnifiedRange(from, end int) string {
	switch n := end - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func (p *printer) unified(h hunk) {
	open, shut := "", ""
	if p.color {
		open, shut = "\x1b[36m", "\x1b[0m"
	}
	fn := h.function
	if fn != "" {
		fn = " " + fn
	}
	Writef(p.Out, "%s@@ -%s +%s @@%s%s\n", open, UnifiedRange(h.x, h.xEnd), UnifiedRange(h.y, h.yEnd), shut, fn)
	x := h.x
	for _, c := range h.changes {
		p.common(x, c.x)
		for _, l := range p.a.Lines[c.x : c.x+c.del] {
			p.line(p.mark("-"), l)
		}
		for _, l := range p.b.Lines[c.y : c.y+c.ins] {
			p.line(p.mark("+"), l)
		}
		x = c.x + c.del
	}
	p.common(x, h.xEnd)
}

// common writes the lines [from, to) that both sides have.
func (p *printer) common(from, to int) {
	for _, l := range p.a.Lines[from:to] {
		mark := " "
		if p.initialTab {
			mark = "\t"
		}
		p.line(mark, l)
	}
}

// contextRange is "first,last"; one number when there is no more than one line.
func contextRange(from, end int) string {
	if end-from <= 1 {
		return fmt.Sprint(end)
	}
	return fmt.Sprintf("%d,%d", from+1, end)
}

func (p *printer) contextual(h hunk) {
	fn := h.function
	if fn != "" {
		fn = " " + fn
	}
	open, shut := "", ""
	if p.color {
		open, shut = "\x1b[36m", "\x1b[0m"
	}
	Writef(p.Out, "***************%s\n%s*** %s ****%s\n", fn, open, contextRange(h.x, h.xEnd), shut)
	p.section = "\x1b[31m"
	if h.deletes {
		x := h.x
		for _, c := range h.changes {
			p.contextLines("  ", p.a.Lines[x:c.x])
			p.contextLines(changeMark("- ", c), p.a.Lines[c.x:c.x+c.del])
			x = c.x + c.del
		}
		p.contextLines("  ", p.a.Lines[x:h.xEnd])
	}
	Writef(p.Out, "%s--- %s ----%s\n", open, contextRange(h.y, h.yEnd), shut)
	p.section = "\x1b[32m"
	if h.inserted {
		y := h.y
		for _, c := range h.changes {
			p.contextLines("  ", p.b.Lines[y:c.y])
			p.contextLines(changeMark("+ ", c), p.b.Lines[c.y:c.y+c.ins])
			y = c.y + c.ins
		}
		p.contextLines("  ", p.b.Lines[y:h.yEnd])
	}
}

func changeMark(one string, c change) string {
	if c.del > 0 && c.ins > 0 {
		return "! "
	}
	return one
}

func (p *printer) contextLines(mark string, lines [][]byte) {
	for _, l := range lines {
		if p.initialTab {
			p.line(mark[:1]+"\t", l)
			continue
		}
		p.line(mark, l)
	}
}

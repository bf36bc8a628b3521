package diff

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// Writef prints to w, which remembers errors.
func Writef(w *bufio.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// printer writes the changes between two files.
type printer struct {
	*differ
	a, b    *Doc
	x, y    file
	begun   bool
	section string // the color of all lines of a context hunk's half
	lastFn  int    // how far up the lines were searched for a function
	fn      string
}

// print writes all and reports the status.
func (p *printer) print(all []change) int {
	switch p.style {
	case unified, contextual:
		p.hunks(all)
	case edScript:
		return p.ed(all)
	case rcsScript:
		p.rcs(all)
	case sideBySide:
		p.columns(all)
	default:
		p.normal(all)
	}
	return 1
}

// ignored drops the changes that -B and -I leave out, and reports whether there
// is nothing to tell.
func (d *differ) ignored(a, b *Doc, all []change) bool {
	if !d.blank && d.ignore == nil {
		return len(all) == 0
	}
	told := 0
	for i := range all {
		c := &all[i]
		c.ignored = d.trivial(a.Lines[c.x:c.x+c.del]) && d.trivial(b.Lines[c.y:c.y+c.ins])
		if !c.ignored {
			told++
		}
	}
	return told == 0
}

func (d *differ) trivial(lines [][]byte) bool {
	for _, l := range lines {
		text := bytes.TrimSuffix(l, []byte{'\n'})
		if d.blank {
			rest := text
			if d.like.noSpace || d.like.AnySpace || d.like.noTail {
				rest = bytes.TrimLeft(text, " \t\r\v\f")
			}
			if len(rest) == 0 {
				continue
			}
		}
		if d.ignore != nil {
			if ok, err := d.ignore.Match(text); ok && err == nil {
				continue
			}
		}
		return false
	}
	return true
}

const noNewline = "\\ No newline at end of file\n"

// line writes one line after a mark ("+", "- ", ...).
func (p *printer) line(mark string, l []byte) {
	text := bytes.TrimSuffix(l, []byte{'\n'})
	if p.emptyBlank && len(text) == 0 {
		mark = strings.TrimRight(mark, " \t")
	}
	open, shut := p.paint(mark)
	p.Out.WriteString(open + mark)
	if p.expandTabs {
		text = expand(text)
	}
	p.Out.Write(text)
	p.Out.WriteString(shut + "\n")
	if !Complete(l) {
		p.Out.WriteString(noNewline)
	}
}

func (p *printer) paint(mark string) (open, shut string) {
	switch {
	case !p.color:
		return "", ""
	case p.section != "":
		return p.section, "\x1b[0m"
	}
	switch mark[0] {
	case '+', '>':
		return "\x1b[32m", "\x1b[0m"
	case '-', '<':
		return "\x1b[31m", "\x1b[0m"
	}
	return "", ""
}

// mark is s and what -T puts after it.
func (p *printer) mark(s string) string {
	if !p.initialTab {
		return s
	}
	return strings.TrimRight(s, " ") + "\t"
}

func (p *printer) normal(all []change) {
	for _, c := range all {
		if c.ignored {
			continue
		}
		p.command(c)
		for _, l := range p.a.Lines[c.x : c.x+c.del] {
			p.line(p.mark("< "), l)
		}
		if c.del > 0 && c.ins > 0 {
			p.Out.WriteString("---\n")
		}
		for _, l := range p.b.Lines[c.y : c.y+c.ins] {
			p.line(p.mark("> "), l)
		}
	}
}

// command is "2,3c4": lines of the first side, what happens, lines of the
// second.
func (p *printer) command(c change) {
	letter := "c"
	switch {
	case c.del == 0:
		letter = "a"
	case c.ins == 0:
		letter = "d"
	}
	open, shut := "", ""
	if p.color {
		open, shut = "\x1b[36m", "\x1b[0m"
	}
	Writef(p.Out, "%s%s%s%s%s\n", open, lineRange(c.x, c.del), letter, lineRange(c.y, c.ins), shut)
}

// lineRange is "first,last", one number for one line, and the line before for
// none.
func lineRange(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprint(from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, from+n)
}

// ed writes a script for ed(1), from the end on.
func (p *printer) ed(all []change) int {
	status := 1
	for _, d := range []*Doc{p.a, p.b} {
		if n := len(d.Lines); n > 0 && !Complete(d.Lines[n-1]) {
			p.Complain("%s: No newline at end of file\n", d.name)
			status = 2
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		if c.ignored {
			continue
		}
		letter := "c"
		if c.ins == 0 {
			letter = "d"
		} else if c.del == 0 {
			letter = "a"
		}
		Writef(p.Out, "%s%s\n", lineRange(c.x, c.del), letter)
		if c.ins == 0 {
			continue
		}
		for j, l := range p.b.Lines[c.y : c.y+c.ins] {
			if string(l) == ".\n" {
				// A lone dot would end the text.
				p.Out.WriteString("..\n.\ns/.//\n")
				if j+1 < c.ins {
					p.Out.WriteString("a\n")
				}
				continue
			}
			p.Out.Write(l)
			if !Complete(l) {
				p.Out.WriteString("\n")
			}
		}
		if last := p.b.Lines[c.y+c.ins-1]; string(last) != ".\n" {
			p.Out.WriteString(".\n")
		}
	}
	return status
}

func (p *printer) rcs(all []change) {
	for _, c := range all {
		if c.ignored {
			continue
		}
		if c.del > 0 {
			Writef(p.Out, "d%d %d\n", c.x+1, c.del)
		}
		if c.ins > 0 {
			Writef(p.Out, "a%d %d\n", c.x+c.del, c.ins)
			for _, l := range p.b.Lines[c.y : c.y+c.ins] {
				p.Out.Write(l)
			}
		}
	}
}

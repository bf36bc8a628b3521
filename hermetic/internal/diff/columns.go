package diff

import (
	"unicode/utf8"

	"egressd/hermetic/internal/gnu"
)

// columns writes both files side by side.
func (p *printer) columns(all []change) {
	s := newColumns(p)
	x, y := 0, 0
	for _, c := range all {
		if c.ignored {
			continue
		}
		s.common(x, c.x, y)
		n := min(c.del, c.ins)
		for i := range n {
			s.row(p.a.Lines[c.x+i], '|', p.b.Lines[c.y+i])
		}
		for _, l := range p.a.Lines[c.x+n : c.x+c.del] {
			s.row(l, '<', nil)
		}
		for _, l := range p.b.Lines[c.y+n : c.y+c.ins] {
			s.row(nil, '>', l)
		}
		x, y = c.x+c.del, c.y+c.ins
	}
	s.common(x, len(p.a.Lines), y)
}

// alike writes two files that are the same.
func (d *differ) alike(x, y file) int {
	b, err := d.read(x)
	if err != nil {
		return d.Die(2, "%s: %s", x.name, Reason(err))
	}
	doc := NewDoc(x.name, b)
	p := &printer{differ: d, a: doc, b: doc, x: x, y: y}
	p.columns(nil)
	return 0
}

// sides is the layout of two columns.
type sides struct {
	*printer
	half, second int // width of a column; where the second begins
}

func newColumns(p *printer) *sides {
	tab := tabStop
	if p.expandTabs {
		tab = 1
	}
	at := (p.width + tab + 3) / (2 * tab) * tab
	s := &sides{printer: p, half: max(0, min(at-3, p.width-at)), second: at}
	if s.half == 0 {
		s.second = p.width
	}
	return s
}

func (s *sides) common(from, to, y int) {
	if s.noCommon {
		return
	}
	for i := from; i < to; i++ {
		if s.leftOnly {
			s.row(s.a.Lines[i], '(', nil)
			continue
		}
		s.row(s.a.Lines[i], ' ', s.b.Lines[y+i-from])
	}
}

func (s *sides) row(left []byte, sep byte, right []byte) {
	column, newline := 0, false
	if left != nil {
		newline = Complete(left)
		column = s.cell(left)
	}
	if sep != ' ' {
		column = s.space(column, (s.half+s.second-1)/2) + 1
		if sep == '|' && Complete(right) != newline {
			sep = map[bool]byte{true: '/', false: '\\'}[newline]
		}
		s.Out.WriteByte(sep)
	}
	if right != nil {
		newline = newline || Complete(right)
		if right[0] != '\n' {
			s.space(column, s.second)
			s.cell(right)
		}
	}
	if newline {
		s.Out.WriteByte('\n')
	}
}

// space goes from one column to another.
func (s *sides) space(from, to int) int {
	if !s.expandTabs {
		for next := from + tabStop - from%tabStop; next <= to; next += tabStop {
			s.Out.WriteByte('\t')
			from = next
		}
	}
	for ; from < to; from++ {
		s.Out.WriteByte(' ')
	}
	return from
}

// cell writes as much of a line as fits, and reports the column after it.
func (s *sides) cell(line []byte) int {
	in, out := 0, 0
	for len(line) > 0 && line[0] != '\n' {
		r, n := utf8.DecodeRune(line)
		text := line[:n]
		line = line[n:]
		switch {
		case r == '\t':
			wide := tabStop - in%tabStop
			if in == out {
				out = s.tab(out, out+wide)
			}
			in += wide
		case r < ' ' || r == 0x7f:
			if in < s.half {
				s.Out.Write(text)
			}
		default:
			in += max(gnu.Width(r), 0)
			if in <= s.half {
				out = in
				s.Out.Write(text)
			}
		}
	}
	return out
}

func (s *sides) tab(from, to int) int {
	switch {
	case s.expandTabs:
		to = min(to, s.half)
		for ; from < to; from++ {
			s.Out.WriteByte(' ')
		}
	case to < s.half:
		s.Out.WriteByte('\t')
		return to
	}
	return from
}

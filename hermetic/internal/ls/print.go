package ls

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

// show prints entries in the format that was asked for.
// The columns are as wide as others need them, too.
func (l *listing) show(entries, others []*entry) {
	switch l.format {
	case "long":
		l.long(entries, others)
	case "commas":
		l.commas(entries)
	case "vertical", "across":
		if l.width == 0 {
			l.separated(entries, "  ")
		} else {
			l.table(entries)
		}
	default:
		prefix := l.prefixes(entries)
		for i, e := range entries {
			l.write(prefix[i] + l.name(e) + l.end)
		}
	}
}

// prefixes are the inode and the size before each name.
func (l *listing) prefixes(entries []*entry) []string {
	p := make([]string, len(entries))
	add := func(on bool, text func(*entry) string) {
		if !on {
			return
		}
		column := make([]string, len(entries))
		for i, e := range entries {
			column[i] = "?"
			if e.fi != nil {
				column[i] = text(e)
			}
		}
		width := widest(column)
		if l.format == "commas" {
			width = 0
		}
		for i, s := range column {
			p[i] += pad(s, width) + " "
		}
	}
	add(l.inodes, func(e *entry) string { return strconv.FormatUint(e.node.Ino, 10) })
	add(l.sizes, func(e *entry) string { return l.blocks.Format(e.node.Blocks * 512) })
	return p
}

func widest(list []string) int {
	n := 0
	for _, s := range list {
		n = max(n, len(s))
	}
	return n
}

func pad(s string, width int) string {
	return strings.Repeat(" ", max(0, width-len(s))) + s
}

func (l *listing) long(entries, others []*entry) {
	shown := len(entries)
	entries = append(entries[:shown:shown], others...)
	prefix := l.prefixes(entries)
	cols := make([][]string, 0, 7)
	add := func(right bool, text func(*entry) string) {
		c := make([]string, len(entries))
		for i, e := range entries {
			if c[i] = "?"; e.fi != nil {
				c[i] = text(e)
			}
		}
		width := widest(c)
		for i, s := range c {
			if right || entries[i].fi == nil {
				c[i] = pad(s, width)
			} else {
				c[i] = s + strings.Repeat(" ", width-len(s))
			}
		}
		cols = append(cols, c)
	}
	id := func(n uint32) string {
		if l.numeric {
			return strconv.FormatUint(uint64(n), 10)
		}
		return inode.Name(n)
	}
	add(true, func(e *entry) string { return strconv.FormatUint(e.node.Links, 10) })
	if l.owner {
		add(l.numeric, func(e *entry) string { return id(e.node.UID) })
	}
	if l.group {
		add(l.numeric, func(e *entry) string { return id(e.node.GID) })
	}
	if l.author {
		add(l.numeric, func(e *entry) string { return id(e.node.UID) })
	}
	add(true, l.size)
	add(true, func(e *entry) string { return l.date(e.when(l)) })
	for i, e := range entries[:shown] {
		mode := "-?????????"
		if e.broken {
			mode = "l?????????"
		}
		if e.fi != nil {
			mode = modes.String(e.fi.Mode())
		}
		line := []string{prefix[i] + mode}
		for _, c := range cols {
			line = append(line, c[i])
		}
		text := strings.Join(line, " ") + " " + l.name(e)
		if e.fi != nil && e.fi.Mode()&fs.ModeSymlink != 0 && e.target != "" {
			text += " -> " + l.linkTarget(e)
		}
		l.write(text + l.end)
	}
}

func (l *listing) linkTarget(e *entry) string {
	s := l.quote(e.target)
	if e.to == nil {
		return s
	}
	if l.color {
		s = l.paint(e.to.Mode(), s)
	}
	if l.indicator == "classify" || l.indicator == "file-type" {
		s += l.mark(e.to.Mode())
	}
	return s
}

func (l *listing) size(e *entry) string {
	m := e.fi.Mode()
	if m&fs.ModeDevice != 0 {
		return fmt.Sprintf("%d, %3d", inode.Major(e.node.Rdev), inode.Minor(e.node.Rdev))
	}
	return l.units.Format(e.node.Size)
}

// HalfYear is how long a time is shown with its hour: half a mean Gregorian
// year.
const HalfYear = 31556952 / 2 * time.Second

func (l *listing) date(t time.Time) string {
	recent := t.After(l.now.Add(-HalfYear)) && !t.After(l.now)
	if recent {
		return date.Format(l.recent, t.In(l.zone))
	}
	return date.Format(l.old, t.In(l.zone))
}

// name is a file's name with its colour and its mark.
func (l *listing) name(e *entry) string {
	s := l.quote(e.name)
	if e.fi == nil {
		if e.broken && (l.indicator == "classify" || l.indicator == "file-type") && l.format != "long" {
			return s + "@"
		}
		return s
	}
	if l.color {
		s = l.paint(e.fi.Mode(), s)
	}
	return s + l.mark(e.fi.Mode())
}

// mark is what -F and -p put after a name.
func (l *listing) mark(m fs.FileMode) string {
	switch {
	case l.indicator == "none":
		return ""
	case m.IsDir():
		return "/"
	case l.indicator == "slash":
		return ""
	case m&fs.ModeSymlink != 0:
		if l.format == "long" {
			return ""
		}
		return "@"
	case m&fs.ModeNamedPipe != 0:
		return "|"
	case m&fs.ModeSocket != 0:
		return "="
	case l.indicator == "classify" && m.IsRegular() && m&0o111 != 0:
		return "*"
	}
	return ""
}

// paint puts the standard colours round a name.
func (l *listing) paint(m fs.FileMode, s string) string {
	code := ""
	switch {
	case m&fs.ModeSymlink != 0:
		code = "01;36"
	case m.IsDir() && m&fs.ModeSticky != 0 && m&0o002 != 0:
		code = "30;42"
	case m.IsDir() && m&0o002 != 0:
		code = "34;42"
	case m.IsDir() && m&fs.ModeSticky != 0:
		code = "37;44"
	case m.IsDir():
		code = "01;34"
	case m&fs.ModeDevice != 0:
		code = "01;33"
	case m&fs.ModeSetuid != 0:
		code = "37;41"
	case m&fs.ModeSetgid != 0:
		code = "30;43"
	case m.IsRegular() && m&0o111 != 0:
		code = "01;32"
	}
	if code == "" {
		return s
	}
	out := "\x1b[" + code + "m" + s + "\x1b[0m"
	if !l.painted {
		l.painted = true
		return "\x1b[0m" + out
	}
	return out
}

// separated prints all on one line, however long.
func (l *listing) separated(entries []*entry, sep string) {
	prefix := l.prefixes(entries)
	for i, e := range entries {
		if i > 0 {
			l.write(sep)
		}
		l.write(prefix[i] + l.name(e))
	}
	if len(entries) > 0 {
		l.write(l.end)
	}
}

func (l *listing) commas(entries []*entry) {
	if l.width == 0 {
		l.separated(entries, ", ")
		return
	}
	prefix := l.prefixes(entries)
	at := 0
	for i, e := range entries {
		text := prefix[i] + l.name(e)
		width := gnu.Columns(text)
		if i > 0 {
			if at+width+2 < l.width {
				l.write(", ")
				at += 2
			} else {
				l.write("," + l.end)
				at = 0
			}
		}
		l.write(text)
		at += width
	}
	if len(entries) > 0 {
		l.write(l.end)
	}
}

// table prints in columns, filled down or across.
func (l *listing) table(entries []*entry) {
	if len(entries) == 0 {
		return
	}
	prefix := l.prefixes(entries)
	names := make([]string, len(entries))
	widths := make([]int, len(entries))
	for i, e := range entries {
		saved := l.color
		l.color = false
		widths[i] = gnu.Columns(prefix[i] + l.name(e))
		l.color = saved
		names[i] = prefix[i] + l.name(e)
	}
	down := l.format == "vertical"
	cols := l.fit(widths, down)
	n := len(cols)
	rows := (len(entries) + n - 1) / n
	for r := range rows {
		at := 0
		for c := range n {
			i := c*rows + r
			if !down {
				i = r*n + c
			}
			if i >= len(entries) {
				break
			}
			l.write(names[i])
			next := i + rows
			if !down {
				next = i + 1
				if c == n-1 {
					break
				}
			}
			if next >= len(entries) {
				break
			}
			l.indent(at+widths[i], at+cols[c])
			at += cols[c]
		}
		l.write(l.end)
	}
}

// fit finds the most columns that fit, and how wide each is.
func (l *listing) fit(widths []int, down bool) []int {
	const least = 3
	most := min(len(widths), max(1, l.width/least))
	for n := most; n > 1; n-- {
		cols := make([]int, n)
		rows := (len(widths) + n - 1) / n
		for i, w := range widths {
			c := i % n
			if down {
				c = i / rows
			}
			if c != n-1 {
				w += 2
			}
			cols[c] = max(cols[c], w, least)
		}
		total := 0
		for _, w := range cols {
			total += w
		}
		if total < l.width {
			return cols
		}
	}
	return []int{0}
}

// indent goes from one column of the screen to another, with tabs where they
// fit.
func (l *listing) indent(from, to int) {
	for from < to {
		if l.tab > 0 && !l.color && to/l.tab > (from+1)/l.tab {
			l.write("\t")
			from += l.tab - from%l.tab
		} else {
			l.write(" ")
			from++
		}
	}
}

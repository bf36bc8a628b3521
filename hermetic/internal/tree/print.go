package tree

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/ls"
	"egressd/hermetic/internal/modes"
)

// details is what stands in brackets before a name.
func (t *treeCall) details(k *treeNode) string {
	if k.fi == nil {
		return ""
	}
	n := inode.Of(k.fi)
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(t.inodes, "%7d", n.Ino)
	add(t.perms, "%s", modes.String(k.fi.Mode()))
	add(t.owner, "%-8.32s", inode.Name(n.UID))
	add(t.group, "%-8.32s", inode.Name(n.GID))
	if t.human {
		add(true, "%4s", treeSize(n.Size))
	} else {
		add(t.size, "%11d", n.Size)
	}
	if t.date {
		zone := date.Zone(t.Getenv("TZ"))
		format := t.timeFormat
		if format == "" {
			if format = "%b %e %H:%M"; !k.fi.ModTime().After(t.Now().Add(-ls.HalfYear)) {
				format = "%b %e  %Y"
			}
		}
		parts = append(parts, date.Format(format, k.fi.ModTime().In(zone)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, " ") + "]  "
}

// treeSize rounds to the nearest, as tree does.
func treeSize(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n), -1
	for f >= 1024 {
		f /= 1024
		unit++
	}
	if f < 10 {
		return fmt.Sprintf("%.1f%c", f, "KMGTPEZ"[unit])
	}
	return fmt.Sprintf("%.0f%c", f, "KMGTPEZ"[unit])
}

func (t *treeCall) show(k *treeNode) (s string) {
	s = k.name
	if t.full {
		s = k.path
	}
	if t.quote {
		s = `"` + s + `"`
	}
	if k.again {
		defer func() { s += "  [recursive, not followed]" }()
	}
	if k.target != "" {
		target := k.target
		if t.quote {
			target = `"` + target + `"`
		}
		if s += " -> " + target; t.classify && k.dir {
			s += "/"
		}
	} else if t.classify && k.fi != nil {
		switch {
		case k.fi.IsDir():
			s += "/"
		case k.fi.Mode().IsRegular() && k.fi.Mode()&0o111 != 0:
			s += "*"
		}
	}
	if k.err != nil {
		s += "  [error opening dir]"
	}
	return s
}

func (t *treeCall) print(n *treeNode, indent string) {
	bar, tee, corner := "│\u00a0\u00a0 ", "├── ", "└── "
	if t.ascii {
		bar, tee, corner = "|   ", "|-- ", "`-- "
	}
	for i, k := range n.kids {
		branch, next := tee, bar
		if i == len(n.kids)-1 {
			branch, next = corner, "    "
		}
		if t.noIndent {
			branch, next = "", ""
		}
		fmt.Fprintf(t.Out, "%s%s%s%s\n", indent, branch, t.details(k), t.show(k))
		t.print(k, indent+next)
	}
}

func (t *treeCall) report() {
	if t.json {
		if !t.noReport {
			fmt.Fprintf(t.Out, ",\n  {\"type\":\"report\",\"directories\":%d", t.dirs)
			if !t.dirsOnly {
				fmt.Fprintf(t.Out, ",\"files\":%d", t.files)
			}
			fmt.Fprint(t.Out, "}\n")
		}
		fmt.Fprintln(t.Out, "]")
		return
	}
	if t.noReport {
		return
	}
	plural := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprint(n) + " " + many
	}
	fmt.Fprintf(t.Out, "\n%s", plural(t.dirs, "directory", "directories"))
	if !t.dirsOnly {
		fmt.Fprintf(t.Out, ", %s", plural(t.files, "file", "files"))
	}
	fmt.Fprintln(t.Out)
}

func (t *treeCall) printJSON(k *treeNode, depth int) {
	indent := strings.Repeat("  ", depth)
	kind := "file"
	switch {
	case k.fi == nil || k.fi.IsDir():
		kind = "directory"
	case k.fi.Mode()&fs.ModeSymlink != 0:
		kind = "link"
	}
	name := k.name
	if t.full {
		name = k.path
	}
	fmt.Fprintf(t.Out, `%s{"type":"%s","name":%s`, indent, kind, jsonString(name))
	if k.target != "" {
		fmt.Fprintf(t.Out, `,"target":%s`, jsonString(k.target))
	}
	if t.size && k.fi != nil {
		fmt.Fprintf(t.Out, `,"size":%d`, k.fi.Size())
	}
	if depth == 1 && k.err != nil {
		fmt.Fprintf(t.Out, `,"contents":[{"error": "opening dir"}]}`+"\n")
		t.Status = 2
		return
	}
	if !(k.fi != nil && k.fi.IsDir()) {
		fmt.Fprint(t.Out, "}")
		return
	}
	if len(k.kids) == 0 {
		fmt.Fprint(t.Out, "}")
	} else {
		fmt.Fprint(t.Out, `,"contents":[`)
		for i, c := range k.kids {
			if i > 0 {
				fmt.Fprint(t.Out, ",")
			}
			fmt.Fprintln(t.Out)
			t.printJSON(c, depth+1)
		}
		fmt.Fprint(t.Out, "\n"+indent+"]}")
	}
	if depth == 1 {
		fmt.Fprintln(t.Out)
	}
}

func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

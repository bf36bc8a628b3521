package ls

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// entry is one file of a list.
type entry struct {
	name   string
	path   string
	fi     fs.FileInfo // nil: it could not be asked
	node   inode.Inode
	target string      // of a link
	to     fs.FileInfo // what the link leads to; nil: nothing
	broken bool        // a link that leads nowhere, where it should be followed
}

func (e *entry) isDir() bool {
	return e.fi != nil && (e.fi.IsDir() || e.to != nil && e.to.IsDir())
}

func ls(w *gnu.Work) {
	l := newListing(w)
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", lsSpec)
	if !ok {
		return
	}
	for _, s := range sets {
		if !l.option(s) {
			return
		}
	}
	if !l.finish() {
		return
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	var files, dirs []*entry
	for _, name := range operands {
		e, ok := l.operand(name)
		if !ok {
			continue
		}
		if e.fi.IsDir() && !l.dirs {
			dirs = append(dirs, e)
		} else {
			files = append(files, e)
		}
	}
	l.order(files)
	l.order(dirs)
	l.show(files, dirs)
	header := l.recursive || len(operands) > 1
	first := len(files) == 0
	for _, d := range dirs {
		l.directory(d, header, first, 0)
		first = false
	}
}

// operand looks at a name of the command line.
func (l *listing) operand(name string) (*entry, bool) {
	e := &entry{name: name, path: name}
	fi, err := gnu.Lstat(l.Work, name)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && l.follow != "never" {
		to, e := gnu.Stat(l.Work, name)
		switch {
		case e == nil && (l.follow != "directories" || to.IsDir()):
			fi = to
		case e != nil && l.follow != "directories":
			err = e
		}
	}
	if err != nil {
		l.Complain("cannot access %s: %s", gnu.QuoteShell(name), command.Reason(err))
		l.Status = 2
		return nil, false
	}
	l.fill(e, fi)
	return e, true
}

func (l *listing) fill(e *entry, fi fs.FileInfo) {
	e.fi, e.node = fi, inode.Of(fi)
	if fi.Mode()&fs.ModeSymlink != 0 {
		if l.format == "long" {
			e.target, _ = l.FS.Readlink(l.Path(e.path))
		}
		if l.format == "long" || l.dirsFirst || l.color {
			e.to, _ = l.FS.Stat(l.Path(e.path))
		}
	}
}

// directory lists one, with a line that names it when header says so.
func (l *listing) directory(d *entry, header, first bool, depth int) {
	if l.Ctx.Err() != nil {
		return
	}
	list, err := l.FS.ReadDir(l.Path(d.path))
	if err != nil {
		l.Complain("cannot open directory %s: %s", gnu.QuoteShell(d.path), command.Reason(err))
		l.Status = max(l.Status, 1+gnu.One(depth == 0))
		return
	}
	if !first {
		l.write(l.end)
	}
	if header {
		l.write(l.quote(d.path) + ":" + l.end)
	}
	var entries []*entry
	if l.all {
		for _, name := range []string{".", ".."} {
			if !l.hidden(name) {
				entries = l.entry(entries, d.path, name)
			}
		}
	}
	for i, de := range list {
		if i&0xff == 0 && l.Ctx.Err() != nil {
			return
		}
		if !l.hidden(de.Name()) {
			entries = l.entry(entries, d.path, de.Name())
		}
	}
	l.order(entries)
	if l.format == "long" || l.sizes {
		var total int64
		for _, e := range entries {
			total += e.node.Blocks * 512
		}
		l.write("total " + l.blocks.Format(total) + l.end)
	}
	l.show(entries, nil)
	if !l.recursive || depth > gnu.MaxDepth {
		return
	}
	for _, e := range entries {
		if e.fi != nil && e.fi.IsDir() && e.name != "." && e.name != ".." {
			l.directory(e, true, false, depth+1)
		}
	}
}

func (l *listing) entry(list []*entry, dir, name string) []*entry {
	e := &entry{name: name, path: gnu.Join(dir, name)}
	fi, err := l.FS.Lstat(l.Path(e.path))
	if err == nil && l.follow == "always" && fi.Mode()&fs.ModeSymlink != 0 {
		if to, err2 := l.FS.Stat(l.Path(e.path)); err2 == nil {
			fi = to
		} else if l.needsStat() {
			err = err2
			e.broken = true
		}
	}
	if err != nil {
		shown := e.path
		if dir == "." {
			shown = name
		}
		l.Complain("cannot access %s: %s", gnu.QuoteShell(shown), command.Reason(err))
		l.Status = max(l.Status, 1)
		return append(list, e)
	}
	l.fill(e, fi)
	return append(list, e)
}

// needsStat says whether names and kinds are not enough.
func (l *listing) needsStat() bool {
	return l.format == "long" || l.sizes || l.inodes || l.sort == "time" || l.sort == "size" || l.indicator != "none" || l.recursive || l.color || l.dirsFirst
}

func (l *listing) write(s string) { _, _ = l.Out.WriteString(s) }

func (e *entry) when(l *listing) time.Time {
	switch l.time {
	case "atime":
		return e.node.Atime
	case "ctime":
		return e.node.Ctime
	}
	return e.node.Mtime
}

func (l *listing) order(list []*entry) {
	if l.sort == "none" && !l.dirsFirst {
		return
	}
	compare := func(a, b *entry) int {
		n := 0
		switch l.sort {
		case "none":
			return 0
		case "size":
			n = cmp.Compare(b.node.Size, a.node.Size)
		case "time":
			n = b.when(l).Compare(a.when(l))
		case "extension":
			n = strings.Compare(extension(a.name), extension(b.name))
		case "version":
			n = gnu.CompareVersions(a.name, b.name)
		case "width":
			n = cmp.Compare(int64(gnu.Columns(l.quote(a.name))), int64(gnu.Columns(l.quote(b.name))))
		}
		if n == 0 {
			n = strings.Compare(a.name, b.name)
		}
		if l.reverse {
			return -n
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b *entry) int {
		if l.dirsFirst && a.isDir() != b.isDir() {
			return gnu.One(b.isDir()) - gnu.One(a.isDir())
		}
		return compare(a, b)
	})
}

func extension(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[at:]
	}
	return ""
}

package tree

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// treeCall is one call of tree.
type treeCall struct {
	*gnu.Work
	all, dirsOnly, full, noIndent, follow, noReport, dirsFirst bool
	perms, owner, group, size, human, date, inodes, classify   bool
	quote, ascii, prune, json, ignoreCase                      bool

	level      int
	patterns   []string
	ignored    []string
	sort       string
	reverse    bool
	timeFormat string
	dirs       int
	files      int
}

func tree(w *gnu.Work) {
	sets, names, ok := w.Options("[-adfghilnopqrstuvxACDFJQNSUX] [-L level] [-P pattern] [-I pattern] [directory ...]",
		"a d f i l x s h p u g D F q N Q r t c U v n C A S J X L: P: I: o: ,noreport ,dirsfirst ,inodes ,device ,sort: ,charset: ,prune ,filelimit: ,timefmt: ,du ,si ,ignore-case ,matchdirs ,nolinks ,gitignore ,filesfirst ,fromfile")
	if !ok {
		return
	}
	t := &treeCall{Work: w, level: -1, sort: "name"}
	for _, s := range sets {
		if !t.option(s) {
			return
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	if t.json {
		fmt.Fprintln(w.Out, "[")
	}
	for i, n := range names {
		if t.json && i > 0 {
			fmt.Fprintln(w.Out, ",")
		}
		t.root(n)
	}
	t.report()
}

func (t *treeCall) option(s command.Set) bool {
	flags := map[string]*bool{
		"a": &t.all, "d": &t.dirsOnly, "f": &t.full, "i": &t.noIndent, "l": &t.follow, "noreport": &t.noReport, "dirsfirst": &t.dirsFirst,
		"p": &t.perms, "u": &t.owner, "g": &t.group, "s": &t.size, "h": &t.human, "D": &t.date, "inodes": &t.inodes, "F": &t.classify,
		"Q": &t.quote, "prune": &t.prune, "J": &t.json, "r": &t.reverse, "ignore-case": &t.ignoreCase,
	}
	if f := flags[s.Name]; f != nil {
		*f = true
		return true
	}
	switch s.Name {
	case "L":
		n, err := strconv.Atoi(s.Value)
		if err != nil || n < 1 {
			_ = t.Out.Flush()
			fmt.Fprintln(t.Stderr, "tree: Invalid level, must be greater than 0.")
			t.Status = 1
			return false
		}
		t.level = n
	case "P":
		t.patterns = append(t.patterns, strings.Split(s.Value, "|")...)
	case "I":
		t.ignored = append(t.ignored, strings.Split(s.Value, "|")...)
	case "t":
		t.sort = "mtime"
	case "c":
		t.sort = "ctime"
	case "U":
		t.sort = "none"
	case "v":
		t.sort = "version"
	case "sort":
		v, ok := gnu.OneOf(t.Work, "--sort", s.Value, "name", "mtime", "ctime", "size", "version", "none")
		t.sort = v
		return ok
	case "timefmt":
		t.timeFormat, t.date = s.Value, true
	case "charset":
		t.ascii = !strings.HasPrefix(strings.ToLower(s.Value), "utf")
	case "n", "N", "q", "x", "A", "S", "C":
	default:
		t.Refuse(s.Name)
		return false
	}
	return true
}

// treeNode is one file, and what is in it.
type treeNode struct {
	name, path, target string
	fi                 fs.FileInfo
	dir                bool
	again              bool // a link to what was listed before
	err                error
	kids               []*treeNode
}

func (t *treeCall) root(name string) {
	n := &treeNode{name: name, path: name}
	fi, err := gnu.Stat(t.Work, name)
	n.fi, n.err, n.dir = fi, err, err == nil && fi.IsDir()
	if err == nil && !n.dir {
		n.err = fs.ErrInvalid
	}
	switch {
	case n.dir:
		if t.fill(n, 1, map[inode.Key]bool{inode.KeyOf(fi): true}); len(n.kids) > 0 {
			t.dirs++
		}
	case err == nil:
		t.files++
	}
	if t.json {
		t.printJSON(n, 1)
		return
	}
	if n.err != nil {
		fmt.Fprintf(t.Out, "%s  [error opening dir]\n", name)
		if err != nil {
			t.Status = 2
		}
		return
	}
	fmt.Fprintf(t.Out, "%s%s\n", t.details(n), t.show(n))
	t.print(n, "")
}

func (t *treeCall) fill(n *treeNode, depth int, seen map[inode.Key]bool) {
	if t.level >= 0 && depth > t.level || t.Ctx.Err() != nil || depth > gnu.MaxDepth {
		return
	}
	list, err := t.FS.ReadDir(t.Path(n.path))
	if n.err = err; err != nil {
		t.Status = 2
	}
	for _, e := range list {
		k := &treeNode{name: e.Name(), path: gnu.Join(n.path, e.Name())}
		if k.fi, err = t.FS.Lstat(t.Path(k.path)); err != nil || !t.wanted(k) {
			continue
		}
		walk := k.fi.IsDir()
		if walk {
			seen[inode.KeyOf(k.fi)] = true
		}
		if k.fi.Mode()&fs.ModeSymlink != 0 && t.follow && k.dir {
			if to, err := t.FS.Stat(t.Path(k.path)); err == nil {
				walk, k.again = !seen[inode.KeyOf(to)], seen[inode.KeyOf(to)]
				seen[inode.KeyOf(to)] = true
			}
		}
		if walk {
			t.fill(k, depth+1, seen)
			if t.prune && len(k.kids) == 0 {
				continue
			}
		}
		n.kids = append(n.kids, k)
		if k.dir {
			t.dirs++
		} else {
			t.files++
		}
	}
	t.order(n.kids)
}

// wanted says whether a file is shown.
func (t *treeCall) wanted(k *treeNode) bool {
	if !t.all && strings.HasPrefix(k.name, ".") {
		return false
	}
	k.dir = k.fi.IsDir()
	if k.fi.Mode()&fs.ModeSymlink != 0 {
		k.target, _ = t.FS.Readlink(t.Path(k.path))
		to, err := t.FS.Stat(t.Path(k.path))
		k.dir = err == nil && to.IsDir()
	}
	if t.match(t.ignored, k.name) || t.dirsOnly && !k.dir {
		return false
	}
	return k.fi.IsDir() || len(t.patterns) == 0 || t.match(t.patterns, k.name)
}

func (t *treeCall) match(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if t.ignoreCase {
			p, name = strings.ToLower(p), strings.ToLower(name)
		}
		return gnu.Fnmatch(strings.TrimSuffix(p, "/"), name, false)
	})
}

func (t *treeCall) order(list []*treeNode) {
	slices.SortStableFunc(list, func(a, b *treeNode) int {
		if t.dirsFirst && a.dir != b.dir {
			return gnu.One(b.dir) - gnu.One(a.dir)
		}
		n := 0
		switch t.sort {
		case "none":
			return 0
		case "mtime":
			n = a.fi.ModTime().Compare(b.fi.ModTime())
		case "ctime":
			n = inode.Of(a.fi).Ctime.Compare(inode.Of(b.fi).Ctime)
		case "size":
			n = cmp.Compare(b.fi.Size(), a.fi.Size())
		case "version":
			n = gnu.CompareVersions(a.name, b.name)
		}
		if n == 0 {
			n = strings.Compare(a.name, b.name)
		}
		if t.reverse {
			return -n
		}
		return n
	})
}

package places

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
)

// Bounds of the search for patterns. A tree that reaches further is protected as
// far as they go, which the run says.
const (
	MaxDepth = 4    // levels below a writable directory
	MaxDirs  = 1024 // directories read in one run
)

// Skipped reports whether the search leaves a directory of that name out: trees
// of other people's code and of build results, too large to be searched at every
// start, and hardly ever opened as a project of their own.
func Skipped(name string) bool {
	switch name {
	case ".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", "target", ".gradle", ".terraform", ".next":
		return true
	}
	return false
}

// floats are the patterns for any depth, by their first element.
type floats struct {
	first map[string][][]string // what follows it
	globs [][]string            // whole patterns whose first element is a pattern itself
}

func newFloats(anchors []files.Anchor) floats {
	f := floats{first: map[string][][]string{}}
	for _, a := range anchors {
		segs := segments(strings.TrimPrefix(a.Path, "**/"))
		if isGlob(segs[0]) {
			f.globs = append(f.globs, segs)
		} else {
			f.first[segs[0]] = append(f.first[segs[0]], segs[1:])
		}
	}
	return f
}

// at reports what is left of the patterns whose first element is name.
func (f *floats) at(name []byte) [][]string {
	rest := f.first[string(name)]
	for _, segs := range f.globs {
		if ok, err := path.Match(segs[0], string(name)); err == nil && ok {
			rest = append(rest[:len(rest):len(rest)], segs[1:])
		}
	}
	return rest
}

// search looks for patterns of any depth in the writable directories, nearest
// first.
func (f *finder) search(anchors []files.Anchor) {
	pats := newFloats(anchors)
	var queue []below
	for _, root := range f.writableRoots() {
		f.inside(root, anchors)
		f.watched[root] = true
		// Caches and what agents keep are not projects: only their own level counts.
		depth := MaxDepth
		if f.Gate.Decide(root).Reason == files.State {
			depth = 0
		}
		queue = append(queue, below{root, depth})
	}
	seen := map[string]bool{}
	var met []entry // what a pattern begins with
	for ; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		if seen[d.path] {
			continue
		}
		seen[d.path] = true
		if len(seen) > MaxDirs {
			f.plan.Whole = false
			return
		}
		f.watched[d.path] = true
		met, parts := met[:0], 0
		see := func(name []byte, kind uint8) {
			if laysOut(name) {
				parts++
			}
			if string(name) == ".git" || len(pats.at(name)) > 0 {
				met = append(met, entry{string(name), kind})
			}
			if kind != unix.DT_DIR || d.depth == 0 || Skipped(string(name)) {
				return
			}
			if p := filepath.Join(d.path, string(name)); f.writable(p) {
				queue = append(queue, below{p, d.depth - 1})
			}
		}
		if raw := f.Ahead.take(d.path); raw != nil {
			each(raw, see)
		} else {
			f.list.each(d.path, see)
		}
		if parts == len(gitLayout) { // a git directory, whatever it is called
			f.gitDir(d.path)
			queue = slices.DeleteFunc(queue, func(b below) bool { return filepath.Dir(b.path) == d.path && gitStores(filepath.Base(b.path)) })
		}
		for _, e := range met {
			p := filepath.Join(d.path, e.name)
			for _, rest := range pats.at([]byte(e.name)) {
				f.expand(p, rest)
			}
			if e.name == ".git" {
				f.gitEntry(p, e.kind)
			}
		}
	}
}

// writableRoots lists the directories that become writable, outermost first.
func (f *finder) writableRoots() []string {
	var roots []string
	for _, p := range sorted(f.access) {
		if f.access[p] == files.ReadWrite && f.IsDir(p) && !slices.Contains(roots, p) {
			roots = append(roots, p)
		}
	}
	return roots
}

// inside looks for patterns that begin above root: a writable .claude has
// settings.json of **/.claude/settings.json.
func (f *finder) inside(root string, anchors []files.Anchor) {
	above := segments(root)
	for _, a := range anchors {
		segs := segments(strings.TrimPrefix(a.Path, "**/"))
		for n := min(len(segs)-1, len(above)); n > 0; n-- {
			if matches(segs[:n], above[len(above)-n:]) {
				f.expand(root, segs[n:])
			}
		}
	}
}

func matches(pattern, names []string) bool {
	for i := range pattern {
		if ok, err := path.Match(pattern[i], names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// expand adds every name at or below base that segs, a pattern, leads to.
func (f *finder) expand(base string, segs []string) {
	if len(segs) == 0 {
		f.add(base)
		return
	}
	if base != "/" && f.writable(base) && f.IsDir(base) {
		f.watched[base] = true
	}
	switch seg := segs[0]; {
	case seg == "**" && strings.HasSuffix(base, "/.git/modules"):
		for _, dir := range f.modules(base) {
			f.expand(dir, segs[1:])
		}
	case seg == "**":
		f.expand(base, segs[1:])
		f.everyDepth(base, segs[1:], MaxDepth)
	case !isGlob(seg):
		f.expand(filepath.Join(base, seg), segs[1:])
	default:
		for _, e := range f.list.all(base) {
			if ok, err := path.Match(seg, e.name); err == nil && ok {
				f.expand(filepath.Join(base, e.name), segs[1:])
			}
		}
	}
}

// everyDepth expands segs in each directory below base.
func (f *finder) everyDepth(base string, segs []string, depth int) {
	for _, e := range f.list.all(base) {
		if e.kind != unix.DT_DIR || Skipped(e.name) {
			continue
		}
		if f.walked++; f.walked > MaxDirs || depth == 0 {
			f.plan.Whole = false
			return
		}
		p := filepath.Join(base, e.name)
		f.expand(p, segs)
		f.everyDepth(p, segs, depth-1)
	}
}

func isGlob(seg string) bool { return strings.ContainsAny(seg, `*?[\`) }

func segments(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

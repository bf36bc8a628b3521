package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxNamed bounds how many arguments and values are looked at as paths.
const maxNamed = 4096

// bind is something brought back into a private root.
type bind struct {
	Path     string // where it appears
	Source   string // the same, links resolved
	Dir      bool
	ReadOnly bool
}

// planBinds picks up what is brought back into the private roots: the working
// directory and HOME to read and write; to read what the person named, which is
// files and directories in argv (also behind "=") and in the values of the
// environment, the entries of PATH, and the program with what lies beside it.
func (c *config) planBinds(roots []string) []bind {
	var binds []bind
	add := func(path string, readOnly bool) {
		if b, ok := newBind(path, readOnly); ok {
			binds = append(binds, placed(b, roots)...)
		}
	}
	add(c.Dir, false)
	add(c.Home, false)
	for _, p := range c.named() {
		add(p, true)
	}
	slices.SortStableFunc(binds, func(a, b bind) int {
		if n := strings.Count(a.Path, "/") - strings.Count(b.Path, "/"); n != 0 {
			return n
		}
		return boolOrder(a.ReadOnly, b.ReadOnly)
	})
	var kept []bind
	for _, b := range binds {
		if covered(b, kept) {
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// newBind reports what path names, if that is a regular file or a directory.
// Sockets, pipes and devices are never brought back.
func newBind(path string, readOnly bool) (bind, bool) {
	if !filepath.IsAbs(path) {
		return bind{}, false
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return bind{}, false
	}
	fi, err := os.Stat(real)
	if err != nil || !fi.IsDir() && !fi.Mode().IsRegular() {
		return bind{}, false
	}
	return bind{Path: path, Source: real, Dir: fi.IsDir(), ReadOnly: readOnly}, true
}

// placed reports where below roots b must appear: under the name it was given
// and under its real one.
func placed(b bind, roots []string) []bind {
	var out []bind
	if below(b.Path, roots) {
		out = append(out, b)
	}
	if b.Source != b.Path && below(b.Source, roots) {
		b.Path = b.Source
		out = append(out, b)
	}
	return slices.DeleteFunc(out, func(b bind) bool { return b.Dir && b.ReadOnly && runtimeDirectory(b.Source) })
}

// runtimeDirectory reports whether path is where a user's daemons keep their
// sockets: naming it does not bring it back.
func runtimeDirectory(path string) bool {
	rest, ok := strings.CutPrefix(path, "/run/user")
	return ok && strings.Count(rest, "/") <= 1
}

// covered reports whether b can be seen through an outer bind already.
func covered(b bind, outer []bind) bool {
	for _, o := range outer {
		if b.Path == o.Path || o.Dir && strings.HasPrefix(b.Path, o.Path+"/") && (!o.ReadOnly || b.ReadOnly) {
			return true
		}
	}
	return false
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// named lists the absolute paths that the person may have meant.
func (c *config) named() []string {
	var words []string
	for i, a := range c.Argv {
		if i > 0 || strings.Contains(a, "/") {
			words = append(words, a)
		}
		if _, v, ok := strings.Cut(a, "="); ok && i > 0 {
			words = append(words, v)
		}
	}
	words = append(words, c.Paths...)
	if len(words) > maxNamed {
		words = words[:maxNamed]
	}
	var paths []string
	for _, w := range words {
		if w == "" || len(w) > 4096 || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		if !filepath.IsAbs(w) {
			w = filepath.Join(c.Dir, w)
		}
		paths = append(paths, w)
	}
	if prog, err := lookPath(c.Argv[0], c.Dir, c.Path); err == nil {
		paths = append(paths, prog, filepath.Dir(prog))
		if real, err := filepath.EvalSymlinks(prog); err == nil {
			paths = append(paths, filepath.Dir(real))
		}
	}
	return paths
}

// bringBack attaches the binds.
func (in *initProcess) bringBack(p *picked) error {
	for i, b := range in.cfg.Plan.Binds {
		if p.binds[i] < 0 {
			continue
		}
		if fi, err := os.Lstat(b.Path); err == nil && fi.Mode()&os.ModeSymlink != 0 {
			p.binds[i].discard() // an outer bind brought the link, and what it leads to is a bind as well
			continue
		}
		if err := mountPoint(b.Path, b.Dir); err != nil {
			return err
		}
		if err := p.binds[i].attach(b.Path); err != nil {
			return err
		}
	}
	return nil
}

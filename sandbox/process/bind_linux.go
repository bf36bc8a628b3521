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
	path     string // where it appears
	source   string // the same, links resolved
	dir      bool
	readOnly bool
	t        tree
}

// planBinds picks up what is brought back into the private roots: the working
// directory and HOME to read and write; to read what the person named, which is
// files and directories in argv (also behind "=") and in the values of the
// environment, the entries of PATH, and the program with what lies beside it.
func (in *initProcess) planBinds(roots []string) ([]bind, error) {
	var binds []bind
	add := func(path string, readOnly bool) {
		if b, ok := newBind(path, readOnly); ok {
			binds = append(binds, placed(b, roots)...)
		}
	}
	add(in.cfg.Dir, false)
	add(in.cfg.Home, false)
	for _, p := range in.named() {
		add(p, true)
	}
	slices.SortStableFunc(binds, func(a, b bind) int {
		if n := strings.Count(a.path, "/") - strings.Count(b.path, "/"); n != 0 {
			return n
		}
		return boolOrder(a.readOnly, b.readOnly)
	})
	var kept []bind
	for _, b := range binds {
		if covered(b, kept) {
			continue
		}
		t, err := cloneTree(b.source, b.readOnly)
		if err != nil {
			return nil, err
		}
		b.t = t
		kept = append(kept, b)
	}
	return kept, nil
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
	return bind{path: path, source: real, dir: fi.IsDir(), readOnly: readOnly, t: -1}, true
}

// placed reports where below roots b must appear: under the name it was given
// and under its real one.
func placed(b bind, roots []string) []bind {
	var out []bind
	if below(b.path, roots) {
		out = append(out, b)
	}
	if b.source != b.path && below(b.source, roots) {
		b.path = b.source
		out = append(out, b)
	}
	return slices.DeleteFunc(out, func(b bind) bool { return b.dir && b.readOnly && runtimeDirectory(b.source) })
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
		if b.path == o.path || o.dir && strings.HasPrefix(b.path, o.path+"/") && (!o.readOnly || b.readOnly) {
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
func (in *initProcess) named() []string {
	var words []string
	for i, a := range in.cfg.Argv {
		if i > 0 || strings.Contains(a, "/") {
			words = append(words, a)
		}
		if _, v, ok := strings.Cut(a, "="); ok && i > 0 {
			words = append(words, v)
		}
	}
	words = append(words, in.cfg.Paths...)
	if len(words) > maxNamed {
		words = words[:maxNamed]
	}
	var paths []string
	for _, w := range words {
		if w == "" || len(w) > 4096 || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		if !filepath.IsAbs(w) {
			w = filepath.Join(in.cfg.Dir, w)
		}
		paths = append(paths, w)
	}
	if prog, err := lookPath(in.cfg.Argv[0], in.cfg.Dir, in.cfg.Path); err == nil {
		paths = append(paths, prog, filepath.Dir(prog))
		if real, err := filepath.EvalSymlinks(prog); err == nil {
			paths = append(paths, filepath.Dir(real))
		}
	}
	return paths
}

// bringBack attaches the binds.
func (in *initProcess) bringBack(p *plan) error {
	for _, b := range p.binds {
		if err := mountPoint(b.path, b.dir); err != nil {
			return err
		}
		if err := b.t.attach(b.path); err != nil {
			return err
		}
	}
	return nil
}

package process

import (
	"path/filepath"
	"slices"
	"strings"

	"egressd/internal/linux/lookpath"
	"egressd/policy/files"
	"egressd/sandbox/process/control"
)

// privateRoots are directories where other programs keep sockets and hand-over
// files. Inside, each is an empty file system of its own.
//
// Threat: the program connects to a daemon that acts outside (docker, dbus, X11,
// resolved, nscd, an ssh or gpg agent) through its socket, which no network
// namespace covers -> the directories where such sockets live are not there; what
// the person named is brought back without sockets; sockets elsewhere are masked (mask_linux.go). Left over: a socket that appears
// elsewhere after the start, on kernels whose Landlock does not know sockets.
var privateRoots = []string{"/tmp", "/var/tmp", "/run", "/var/run"}

// maxNamed bounds how many arguments and values are tried as paths.
const maxNamed = 4096

// planBinds lists what is brought back into the private roots. As the rules about
// files say: the working directory, HOME, and what a person's rule names. To read: the files and directories that the
// person named in argv (also behind "=") and in the environment, the entries of
// PATH, and the program, whole (program_linux.go).
func (c *config) planBinds(roots []string) []control.Bind {
	var binds []control.Bind
	add := func(path string, readOnly bool) {
		if b, ok := c.newBind(path, readOnly || c.readOnly); ok {
			binds = append(binds, placed(b, roots)...)
		}
	}
	for _, p := range append([]string{c.Dir, c.home}, c.namedByRules()...) {
		if access := c.decide(p).Access; access != files.Hidden {
			add(p, access == files.ReadOnly)
		}
	}
	for _, p := range c.named() {
		add(p, true)
	}
	slices.SortStableFunc(binds, func(a, b control.Bind) int {
		if n := strings.Count(a.Path, "/") - strings.Count(b.Path, "/"); n != 0 {
			return n
		}
		return boolOrder(a.ReadOnly, b.ReadOnly)
	})
	var kept []control.Bind
	for _, b := range binds {
		if covered(b, kept) || shownAt(b.Path, c.Plan.Shown) {
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// newBind reports what path names, if that is a regular file or a directory.
// Sockets, pipes and devices are never brought back.
func (c *config) newBind(path string, readOnly bool) (control.Bind, bool) {
	if !filepath.IsAbs(path) {
		return control.Bind{}, false
	}
	path = filepath.Clean(path)
	real, err := c.names.Resolve(path)
	if err != nil || !c.names.IsDir(real) && !c.names.IsFile(real) {
		return control.Bind{}, false
	}
	return control.Bind{Path: path, Source: real, Dir: c.names.IsDir(real), ReadOnly: readOnly}, true
}

// placed lists where below roots b must appear: under its given name and under its
// real one.
func placed(b control.Bind, roots []string) []control.Bind {
	var out []control.Bind
	if below(b.Path, roots) {
		out = append(out, b)
	}
	if b.Source != b.Path && below(b.Source, roots) {
		b.Path = b.Source
		out = append(out, b)
	}
	return slices.DeleteFunc(out, func(b control.Bind) bool { return b.Dir && b.ReadOnly && runtimeDirectory(b.Source) })
}

// runtimeDirectory reports whether path is where a user's daemons keep their
// sockets: naming it does not bring it back.
func runtimeDirectory(path string) bool {
	rest, ok := strings.CutPrefix(path, "/run/user")
	return ok && strings.Count(rest, "/") <= 1
}

// covered reports whether b is already visible through an outer bind.
func covered(b control.Bind, outer []control.Bind) bool {
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
	words = append(words, c.paths...)
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
	for _, p := range filepath.SplitList(c.Path) {
		paths = append(paths, c.install(p)...)
	}
	if prog, err := lookpath.Find(c.Argv[0], c.Dir, c.Path); err == nil {
		paths = append(paths, prog)
		paths = append(paths, c.around(prog)...)
		if script := c.script(); script != "" {
			paths = append(paths, c.around(script)...)
		}
	}
	return paths
}

// below reports whether path lies strictly below one of roots.
func below(path string, roots []string) bool {
	for _, r := range roots {
		if strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

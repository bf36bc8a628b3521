package sandbox

// Marker names the variable that says that a program is behind a gate of ours. It
// is 1 in every run, unless the person gave it another value. A program can set it
// as well: it is advice for programs that mean well, and nothing is decided by it.
const Marker = "EGRESSD"

// mark adds to the variables of a program those by which it learns where it is.
func mark(all map[string]string, argv []string) {
	if _, set := all[Marker]; !set {
		all[Marker] = "1"
	}
	if a := find(argv); a != nil && a.sandboxVar != "" {
		if _, set := all[a.sandboxVar]; !set {
			all[a.sandboxVar] = "egressd"
		}
	}
}

package files

import (
	"fmt"
	"slices"
)

// Within reports whether s allows nothing that ceiling does not, for a ceiling
// whose owner can refuse a run but not hold its files. It compares rules as they
// are written: s repeats what the ceiling hides or makes read-only, and opens
// nothing that the ceiling does not open. The error says what to add or to leave
// out.
//
// Threat: a session opens by a rule of its own, or by leaving a rule out, what
// the ceiling keeps shut -> no Within. Left over: whoever runs a launcher of
// their own, or none, is not held by it: the daemon sees no file.
func (s Section) Within(ceiling Section) error {
	for _, r := range ceiling.Hide {
		if !lists(s.Hide, r) {
			return fmt.Errorf("it hides %s: add --hide %s", r.Path, r.Path)
		}
	}
	for _, r := range ceiling.Read {
		if !lists(s.Read, r) && !lists(s.Hide, r) {
			return fmt.Errorf("it makes %s read-only: add --read %s", r.Path, r.Path)
		}
	}
	for _, r := range s.Write {
		if !lists(ceiling.Write, r) {
			return fmt.Errorf("%s: it does not let a program write %s: leave it out", r.At, r.Path)
		}
	}
	for _, r := range s.Read {
		if !lists(ceiling.Read, r) && !lists(ceiling.Write, r) {
			return fmt.Errorf("%s: it does not name %s: leave it out", r.At, r.Path)
		}
	}
	if openness(s.Home) > openness(ceiling.Home) {
		return fmt.Errorf("its home directory is %s: add --home %s", ceiling.Home.orDefault(), ceiling.Home.orDefault())
	}
	return nil
}

func lists(rules []Rule, r Rule) bool {
	return slices.ContainsFunc(rules, func(have Rule) bool { return have.Path == r.Path })
}

func (h Home) orDefault() Home {
	if h == HomeUnset {
		return HomeReadOnly
	}
	return h
}

// openness orders what becomes of the home directory.
func openness(h Home) int {
	switch h {
	case HomePrivate:
		return 0
	case HomeReadWrite:
		return 2
	case HomeUnset, HomeReadOnly:
	}
	return 1
}

package places

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
	"egressd/sandbox/process/control"
)

// maxPlaces bounds a plan. A tree with more protected names is refused: the
// person starts the program in a part of it.
const maxPlaces = 2048

// Machine is what a plan is made for.
type Machine struct {
	Gate     *files.Gate
	Mounts   mountinfo.Table
	Roots    []string       // directories that become private, with nothing of the host in them
	Binds    []control.Bind // what is brought back into them
	Shown    []control.Bind // what the caller shows at other paths: not this plan's business
	ReadOnly bool           // nothing is writable, whatever the gate says
	Ahead    *Ahead         // what was read already of the working directory; nil: nothing
	*Names                  // what the caller has found out about names; nil: nothing
}

// Plan is what Find found.
type Plan struct {
	Places []control.Place // outermost first
	Watch  []string        // writable directories in which a protected name that is not there yet could appear
	Known  map[string]bool // protected names below them that exist
	Whole  bool            // false: the search for protected names ended at its bound
}

// Find looks for everything that the gate's rules name.
//
// Threat: a program writes what a person's shell, editor or git obeys later, or
// reads a key -> the host's file systems are read-only; what may be written is
// mounted over that, what may not be within it is a mount again, and every
// directory in between is one, too, so that it cannot be renamed; what is hidden
// is covered. Names that lead through links, and other mounts of the same file
// system, are found and treated alike. Left over: names that do not exist yet (see
// package latecomers), names below the bounds of the search (see search_linux.go),
// and another hard link of a hidden file, wherever it is.
func Find(m Machine) (*Plan, error) {
	f := &finder{
		Machine: m, access: map[string]files.Access{}, links: map[string]bool{}, named: map[string]bool{}, watched: map[string]bool{},
		asked: map[string]bool{}, submodules: map[string][]string{},
		plan: &Plan{Known: map[string]bool{}, Whole: true},
	}
	if f.Names == nil {
		f.Names = NewNames()
	}
	f.expectMany()
	var floating []files.Anchor // patterns for any depth
	for i := range m.Gate.Anchors() {
		a := &m.Gate.Anchors()[i]
		switch {
		case strings.HasPrefix(a.Path, "**/"):
			floating = append(floating, *a)
		case kernels(a.Path):
			if a.Reason == files.Named {
				return nil, fmt.Errorf("files: %s (%s): /proc, /sys and /dev are the sandbox's own, and no rule changes them", a.Rule.Path, a.Rule.At)
			}
		case a.Glob():
			f.expand("/", segments(a.Path))
		default:
			f.add(a.Path)
		}
	}
	f.search(floating)
	f.gitDirs()
	f.plan.Places = f.places()
	if len(f.plan.Places) > maxPlaces {
		return nil, fmt.Errorf("files: more than %d names to protect: start in a part of this directory", maxPlaces)
	}
	for dir := range f.watched {
		f.plan.Watch = append(f.plan.Watch, dir)
	}
	slices.SortFunc(f.plan.Watch, outerFirst)
	return f.plan, nil
}

// many is how many rules a directory must have for a list of it to cost less.
const many = 16

// expectMany lists the directories that many rules are about, such as HOME.
func (f *finder) expectMany() {
	of := map[string]int{}
	for i := range f.Gate.Anchors() {
		if a := &f.Gate.Anchors()[i]; !a.Glob() && a.Path != "/" {
			dir := a.Path[:strings.LastIndexByte(a.Path, '/')]
			if of[dir]++; of[dir] == many && dir != "" {
				f.expect(dir)
			}
		}
	}
}

// kernels reports whether path lies where the sandbox has file systems of its own.
func kernels(path string) bool {
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if mountinfo.Within(path, own) {
			return true
		}
	}
	return false
}

type finder struct {
	Machine
	plan    *Plan
	access  map[string]files.Access // of names that exist, without links in them
	links   map[string]bool         // symbolic links that must stay what they are
	named   map[string]bool         // names looked at
	watched map[string]bool
	asked   map[string]bool // writable's answers
	walked  int             // directories that everyDepth saw

	submodules map[string][]string // modules' answers
	inModules  int                 // directories that modules saw
}

// add notes one name that a rule is about.
func (f *finder) add(name string) {
	if f.named[name] || kernels(name) || f.out(name) {
		return
	}
	f.named[name] = true
	dir := filepath.Dir(name)
	if f.kind(dir) == 0 || f.kind(name) == 0 {
		if f.IsDir(dir) && f.writable(dir) && f.Gate.Decide(name).Access < files.ReadWrite {
			f.watched[dir] = true
		}
		return
	}
	want := f.Gate.Decide(name).Access
	if want < files.ReadWrite {
		f.plan.Known[name] = true
	}
	real, links, err := f.resolve(name)
	if want < files.ReadWrite {
		for _, l := range links {
			if f.writable(filepath.Dir(l)) {
				f.links[l] = true
			}
		}
	}
	if err != nil || f.out(real) || kernels(real) {
		return // a link that leads nowhere
	}
	if real != name {
		want = f.throughLink(want, real, links)
	}
	f.narrow(real, want)
}

// throughLink is the access that real gets because a link of that access leads
// to it. A link can only take away what the program could have made point there.
func (f *finder) throughLink(want files.Access, real string, links []string) files.Access {
	own := f.Gate.Decide(real)
	if want <= own.Access {
		return want
	}
	if own.Reason == files.Credential || own.Reason == files.RunsLater || own.Reason == files.Named {
		return own.Access
	}
	for _, l := range links {
		if f.writable(filepath.Dir(l)) {
			return own.Access
		}
	}
	return want
}

// narrow notes the access of a name without links, and of its other names.
func (f *finder) narrow(real string, want files.Access) {
	if f.ReadOnly {
		want = min(want, files.ReadOnly)
	}
	if have, ok := f.access[real]; ok && have <= want {
		return
	}
	f.access[real] = want
	if want == files.ReadWrite {
		return
	}
	aliases := f.Mounts.Aliases(real)
	for _, b := range f.Binds {
		if b.Path != b.Source && mountinfo.Within(real, b.Source) {
			aliases = append(aliases, b.Path+strings.TrimPrefix(real, b.Source))
		}
	}
	for _, alias := range aliases {
		if f.out(alias) || kernels(alias) {
			continue
		}
		if have, ok := f.access[alias]; !ok || have > want {
			f.access[alias] = want
		}
	}
}

func (f *finder) writable(dir string) bool {
	w, ok := f.asked[dir]
	if !ok {
		w = !f.ReadOnly && f.Gate.Decide(dir).Access == files.ReadWrite
		f.asked[dir] = w
	}
	return w
}

// out reports whether nothing of the host is to be seen at path: it lies in a
// private root, or under what the caller shows. The roots themselves are out.
func (f *finder) out(path string) bool {
	in := func(list []control.Bind) bool {
		return slices.ContainsFunc(list, func(b control.Bind) bool { return mountinfo.Within(path, b.Path) })
	}
	if in(f.Shown) {
		return true
	}
	return slices.ContainsFunc(f.Roots, func(r string) bool { return mountinfo.Within(path, r) }) && !in(f.Binds)
}

// places turns accesses into mounts.
func (f *finder) places() []control.Place {
	kinds := map[string]control.PlaceKind{} // of what is kept
	binds := map[string]control.PlaceKind{}
	for _, b := range f.Binds {
		binds[b.Path] = control.PlaceWritable
		if b.ReadOnly {
			binds[b.Path] = control.PlaceReadOnly
		}
	}
	var out []control.Place
	keep := func(path string, kind control.PlaceKind) {
		kinds[path] = kind
		out = append(out, control.Place{Path: path, Kind: kind, Dir: f.IsDir(path)})
	}
	names := sorted(f.access)
	for path := range binds {
		if _, ok := f.access[path]; !ok {
			names = append(names, path)
		}
	}
	slices.SortFunc(names, outerFirst)
	for _, path := range names {
		above, around := f.around(path, kinds)
		// Binds are there first, and what covers a directory covers those in it.
		if kind, ok := binds[path]; ok && around != control.PlaceCovered && around != control.PlacePrivate {
			kinds[path] = kind
			above, around = path, kind
		}
		if _, ok := f.access[path]; !ok {
			continue
		}
		if kind, ok := f.mount(path, around); ok {
			if around == control.PlaceWritable || around == control.PlacePinned {
				for _, dir := range between(above, path) {
					keep(dir, control.PlacePinned)
				}
			}
			keep(path, kind)
		}
	}
	for _, path := range sorted(f.links) {
		above, around := f.around(path, kinds)
		if around != control.PlaceWritable && around != control.PlacePinned {
			continue
		}
		for _, dir := range between(above, path) {
			keep(dir, control.PlacePinned)
		}
		kinds[path] = control.PlaceLink
		out = append(out, control.Place{Path: path, Kind: control.PlaceLink})
	}
	slices.SortStableFunc(out, func(a, b control.Place) int { return outerFirst(a.Path, b.Path) })
	return out
}

// around reports the innermost place that path lies in, and its kind. The host's
// own file system is read-only.
func (f *finder) around(path string, kinds map[string]control.PlaceKind) (string, control.PlaceKind) {
	if kind, ok := kinds[path]; ok {
		return path, kind
	}
	for dir := path; dir != "/"; {
		dir = filepath.Dir(dir)
		if kind, ok := kinds[dir]; ok {
			return dir, kind
		}
	}
	return "/", control.PlaceReadOnly
}

// mount reports how path is mounted in a place of kind around; false: it has what
// it needs.
func (f *finder) mount(path string, around control.PlaceKind) (control.PlaceKind, bool) {
	access := f.access[path]
	switch around {
	case control.PlaceWritable, control.PlacePinned:
		switch access {
		case files.ReadWrite:
			return 0, false
		case files.ReadOnly:
			return control.PlaceReadOnly, true
		}
	case control.PlaceCovered, control.PlacePrivate:
		switch access {
		case files.ReadWrite:
			return control.PlaceWritable, true
		case files.ReadOnly:
			return control.PlaceReadable, true
		}
		return 0, false
	default:
		switch access {
		case files.ReadWrite:
			return control.PlaceWritable, true
		case files.ReadOnly:
			return 0, false
		}
	}
	if f.Gate.Decide(path).Reason == files.HomeDir {
		return control.PlacePrivate, true
	}
	return control.PlaceCovered, true
}

// between lists the directories strictly between above and path, outermost first.
func between(above, path string) (dirs []string) {
	for dir := filepath.Dir(path); len(dir) > len(above); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for path := range m {
		out = append(out, path)
	}
	slices.SortFunc(out, outerFirst)
	return out
}

func outerFirst(a, b string) int {
	return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
}

package files

import (
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// linker is one call of ln.
type linker struct {
	copier
	symbolic, relative, noDeref, logical bool
}

func ln(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [-T] TARGET LINK_NAME",
		"b ,backup:: d,directory F f,force i,interactive L,logical n,no-dereference P,physical r,relative s,symbolic S,suffix: t,target-directory: T,no-target-directory v,verbose")
	if !ok {
		return
	}
	l := &linker{copier: *newCopier(w)}
	for _, s := range sets {
		if !l.option(s) {
			return
		}
	}
	switch {
	case len(names) == 0:
		w.TryHelp("missing file operand")
		return
	case l.relative && !l.symbolic:
		w.Die(1, "cannot do --relative without --symbolic")
		return
	case l.noTarget && l.targetSet:
		w.TryHelp("cannot combine --target-directory and --no-target-directory")
		return
	case l.noTarget && len(names) == 1:
		w.TryHelp("missing destination file operand after %s", q(names[0]))
		return
	case l.noTarget && len(names) > 2:
		w.TryHelp("extra operand %s", q(names[2]))
		return
	}
	l.place(names)
}

func (l *linker) option(s command.Set) bool {
	switch s.Name {
	case "symbolic":
		l.symbolic = true
	case "relative":
		l.relative = true
	case "no-dereference":
		l.noDeref = true
	case "logical":
		l.logical = true
	case "physical":
		l.logical = false
	case "directory", "F":
	case "force":
		l.force, l.ask = true, false
	case "interactive":
		l.force, l.ask = false, true
	default:
		return l.shared(s)
	}
	return true
}

// place works out where the links go.
func (l *linker) place(names []string) {
	dir := l.target
	switch {
	case l.targetSet:
		if fi, err := statOf(l.Work, dir); err != nil || !fi.IsDir() {
			l.Die(1, "target directory %s: %s", q(dir), orNotDir(err))
			return
		}
	case l.noTarget:
		l.make(names[0], names[1])
		return
	case len(names) == 1:
		dir = "."
	default:
		dst := names[len(names)-1]
		fi, err := statOf(l.Work, dst)
		if l.noDeref && err == nil {
			fi, err = lstat(l.Work, trimSlashes(dst))
		}
		if err != nil || !fi.IsDir() {
			if len(names) > 2 {
				l.Die(1, "target %s: %s", q(dst), orNotDir(err))
				return
			}
			l.make(names[0], dst)
			return
		}
		dir, names = dst, names[:len(names)-1]
	}
	for _, n := range names {
		dst := join(dir, last(n))
		if len(names) == 1 && dir == "." && !l.targetSet {
			dst = "./" + last(n)
		}
		l.make(n, dst)
	}
}

func (l *linker) make(target, name string) {
	shown := name
	if !l.symbolic {
		fi, err := lstat(l.Work, target)
		if err == nil && l.logical {
			fi, err = statOf(l.Work, target)
		}
		if err != nil {
			l.Fault("failed to access %s: %s", q(target), reason(err))
			return
		}
		if fi.IsDir() {
			l.Fault("%s: hard link not allowed for directory", gnu.QuoteName(target))
			return
		}
	}
	backup := ""
	if to, err := lstat(l.Work, name); err == nil {
		var ok bool
		if backup, ok = l.clear(target, name, to); !ok {
			return
		}
	}
	said := target
	if l.relative {
		said = l.relativeTo(target, name)
	}
	if err := l.link(said, name); err != nil {
		if l.symbolic && said == "" {
			l.Fault("failed to create symbolic link %s -> %s: %s", q(shown), q(said), reason(err))
		} else if l.symbolic {
			l.Fault("failed to create symbolic link %s: %s", q(shown), reason(err))
		} else if is(err, syscall.EEXIST) {
			l.Fault("failed to create hard link %s: %s", q(shown), reason(err))
		} else {
			l.Fault("failed to create hard link %s => %s: %s", q(shown), q(target), reason(err))
		}
		return
	}
	if l.verbose {
		arrow := map[bool]string{true: "->", false: "=>"}[l.symbolic]
		if backup != "" {
			l.say("%s ~ ", q(backup))
		}
		l.say("%s %s %s\n", q(shown), arrow, q(said))
	}
}

func (l *linker) link(said, name string) error {
	if l.symbolic {
		if said == "" || name == "" {
			return syscall.ENOENT
		}
		return l.FS.Symlink(said, l.Path(name))
	}
	from := l.Path(said)
	if l.logical {
		if p, err := l.FS.Resolve(from); err == nil {
			from = p
		}
	}
	return l.FS.Link(from, l.Path(name))
}

// clear takes away what is at name, if it may.
func (l *linker) clear(target, name string, to fs.FileInfo) (backup string, ok bool) {
	if !l.force && !l.ask && l.backup == "" {
		return "", true
	}
	if to.IsDir() {
		l.Fault("%s: cannot overwrite directory", gnu.QuoteName(name))
		return "", false
	}
	if fi, err := lstat(l.Work, target); err == nil && keyOf(fi) == keyOf(to) && (!l.symbolic || l.sameName(target, name)) {
		if l.backup == "" || l.sameName(target, name) {
			if l.sameName(target, name) || !l.force {
				l.Fault("%s and %s are the same file", q(target), q(name))
				return "", false
			}
		}
	}
	if l.ask && !l.yes("replace %s?", q(name)) {
		return "", false
	}
	if l.backup != "" {
		return l.saveAs(name)
	}
	if err := l.FS.Remove(l.Path(name)); err != nil {
		l.Fault("cannot remove %s: %s", q(name), reason(err))
		return "", false
	}
	return "", true
}

// relativeTo is how target is reached from the directory of name.
func (l *linker) relativeTo(target, name string) string {
	dir, err := l.FS.Resolve(l.Path(parent(name)))
	if err != nil {
		return target
	}
	to, err := canonical(l.Work, l.Path(target), missingAny)
	if err != nil {
		return target
	}
	return relative(dir, to)
}

// relative is the way from a directory to a file, both without links.
func relative(dir, to string) string {
	if dir == to {
		return "."
	}
	a, b := split(dir), split(to)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	parts := append(strings.Split(strings.Repeat("../", len(a)-n), "/")[:len(a)-n], b[n:]...)
	return strings.Join(parts, "/")
}

func split(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
}

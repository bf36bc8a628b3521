package cp

import (
	"errors"
	"io/fs"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/realpath"
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
		w.TryHelp("missing destination file operand after %s", gnu.QuoteShell(names[0]))
		return
	case l.noTarget && len(names) > 2:
		w.TryHelp("extra operand %s", gnu.QuoteShell(names[2]))
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
		if fi, err := gnu.Stat(l.Work, dir); err != nil || !fi.IsDir() {
			l.Die(1, "target directory %s: %s", gnu.QuoteShell(dir), orNotDir(err))
			return
		}
	case l.noTarget:
		l.make(names[0], names[1])
		return
	case len(names) == 1:
		dir = "."
	default:
		dst := names[len(names)-1]
		fi, err := gnu.Stat(l.Work, dst)
		if l.noDeref && err == nil {
			fi, err = gnu.Lstat(l.Work, gnu.TrimSlashes(dst))
		}
		if err != nil || !fi.IsDir() {
			if len(names) > 2 {
				l.Die(1, "target %s: %s", gnu.QuoteShell(dst), orNotDir(err))
				return
			}
			l.make(names[0], dst)
			return
		}
		dir, names = dst, names[:len(names)-1]
	}
	for _, n := range names {
		dst := gnu.Join(dir, gnu.Last(n))
		if len(names) == 1 && dir == "." && !l.targetSet {
			dst = "./" + gnu.Last(n)
		}
		l.make(n, dst)
	}
}

func (l *linker) make(target, name string) {
	shown := name
	if !l.symbolic {
		fi, err := gnu.Lstat(l.Work, target)
		if err == nil && l.logical {
			fi, err = gnu.Stat(l.Work, target)
		}
		if err != nil {
			l.Fault("failed to access %s: %s", gnu.QuoteShell(target), command.Reason(err))
			return
		}
		if fi.IsDir() {
			l.Fault("%s: hard link not allowed for directory", gnu.QuoteName(target))
			return
		}
	}
	backup := ""
	if to, err := gnu.Lstat(l.Work, name); err == nil {
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
			l.Fault("failed to create symbolic link %s -> %s: %s", gnu.QuoteShell(shown), gnu.QuoteShell(said), command.Reason(err))
		} else if l.symbolic {
			l.Fault("failed to create symbolic link %s: %s", gnu.QuoteShell(shown), command.Reason(err))
		} else if errors.Is(err, syscall.EEXIST) {
			l.Fault("failed to create hard link %s: %s", gnu.QuoteShell(shown), command.Reason(err))
		} else {
			l.Fault("failed to create hard link %s => %s: %s", gnu.QuoteShell(shown), gnu.QuoteShell(target), command.Reason(err))
		}
		return
	}
	if l.verbose {
		arrow := map[bool]string{true: "->", false: "=>"}[l.symbolic]
		if backup != "" {
			l.say("%s ~ ", gnu.QuoteShell(backup))
		}
		l.say("%s %s %s\n", gnu.QuoteShell(shown), arrow, gnu.QuoteShell(said))
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
	if fi, err := gnu.Lstat(l.Work, target); err == nil && inode.KeyOf(fi) == inode.KeyOf(to) && (!l.symbolic || l.sameName(target, name)) {
		if l.backup == "" || l.sameName(target, name) {
			if l.sameName(target, name) || !l.force {
				l.Fault("%s and %s are the same file", gnu.QuoteShell(target), gnu.QuoteShell(name))
				return "", false
			}
		}
	}
	if l.ask && !l.yes("replace %s?", gnu.QuoteShell(name)) {
		return "", false
	}
	if l.backup != "" {
		return l.saveAs(name)
	}
	if err := l.FS.Remove(l.Path(name)); err != nil {
		l.Fault("cannot remove %s: %s", gnu.QuoteShell(name), command.Reason(err))
		return "", false
	}
	return "", true
}

// relativeTo is how target is reached from the directory of name.
func (l *linker) relativeTo(target, name string) string {
	dir, err := l.FS.Resolve(l.Path(realpath.Parent(name)))
	if err != nil {
		return target
	}
	to, err := realpath.Canonical(l.Work, l.Path(target), realpath.MissingAny)
	if err != nil {
		return target
	}
	return realpath.Relative(dir, to)
}

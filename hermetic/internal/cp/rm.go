package cp

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

// remover is one call of rm.
type remover struct {
	*gnu.Work
	recursive, force, verbose, dirs, ask, once bool
	keepRoot, oneFS                            bool
	stdin                                      *bufio.Reader
	device                                     uint64
}

func rm(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...",
		"d,dir f,force i I ,interactive:: ,no-preserve-root ,one-file-system ,preserve-root:: r,recursive R v,verbose")
	if !ok {
		return
	}
	r := &remover{Work: w, keepRoot: true}
	for _, s := range sets {
		switch s.Name {
		case "dir":
			r.dirs = true
		case "force":
			r.force, r.ask, r.once = true, false, false
		case "i":
			r.ask, r.once, r.force = true, false, false
		case "I":
			r.once, r.ask, r.force = true, false, false
		case "interactive":
			v := "always"
			if s.Given {
				if v, ok = gnu.OneOf(w, "--interactive", s.Value, "never,no,none", "once", "always,yes"); !ok {
					return
				}
			}
			r.ask, r.once = v == "always", v == "once"
			r.force = r.force && !r.ask && !r.once
		case "no-preserve-root":
			r.keepRoot = false
		case "preserve-root":
			r.keepRoot = true
		case "one-file-system":
			r.oneFS = true
		case "recursive", "R":
			r.recursive = true
		case "verbose":
			r.verbose = true
		}
	}
	if len(operands) == 0 {
		if !r.force {
			w.TryHelp("missing operand")
		}
		return
	}
	if r.once && (r.recursive || len(operands) > 3) && !r.proceed(len(operands)) {
		return
	}
	for _, name := range operands {
		r.operand(name)
	}
}

func (r *remover) proceed(n int) bool {
	plural := "s"
	if n == 1 {
		plural = ""
	}
	if r.recursive {
		return yes(r.Work, &r.stdin, "remove %d argument%s recursively?", n, plural)
	}
	return yes(r.Work, &r.stdin, "remove %d argument%s?", n, plural)
}

func (r *remover) operand(name string) {
	if r.recursive {
		switch base := gnu.Last(name); {
		case base == "." || base == "..":
			r.Fault("refusing to remove '.' or '..' directory: skipping %s", gnu.QuoteShell(name))
			return
		}
		if p, err := r.FS.Resolve(r.Path(name)); err == nil && p == "/" && r.keepRoot {
			if fi, err := gnu.Lstat(r.Work, name); err != nil || fi.IsDir() {
				if name == "/" {
					r.Fault("it is dangerous to operate recursively on '/'")
				} else {
					r.Fault("it is dangerous to operate recursively on %s (same as '/')", gnu.QuoteShell(name))
				}
				r.Complain("use --no-preserve-root to override this failsafe")
				return
			}
		}
	}
	if fi, err := gnu.Lstat(r.Work, name); err == nil {
		r.device = inode.Of(fi).Dev
	}
	r.remove(name, 0)
}

// remove removes one file, or a directory with what is in it.
func (r *remover) remove(name string, depth int) bool {
	if r.Ctx.Err() != nil {
		return false
	}
	fi, err := gnu.Lstat(r.Work, name)
	if err != nil {
		if r.force && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR)) {
			return true
		}
		return r.cannot(name, err)
	}
	if fi.IsDir() {
		return r.dir(name, fi, depth)
	}
	if r.ask && !r.yes(name, fi) {
		return false
	}
	if err := r.FS.Remove(r.Path(name)); err != nil {
		return r.cannot(name, err)
	}
	if r.verbose {
		fmt.Fprintf(r.Out, "removed %s\n", gnu.QuoteShell(name))
	}
	return true
}

func (r *remover) cannot(name string, err error) bool {
	r.Fault("cannot remove %s: %s", gnu.QuoteShell(name), command.Reason(err))
	return false
}

func (r *remover) yes(name string, fi fs.FileInfo) bool {
	kind := modes.FileKind(fi.Mode(), fi.Size())
	if fi.Mode()&fs.ModeSymlink == 0 && r.FS.Access(r.Path(name), 2) != nil {
		return yes(r.Work, &r.stdin, "remove write-protected %s %s?", kind, gnu.QuoteShell(name))
	}
	return yes(r.Work, &r.stdin, "remove %s %s?", kind, gnu.QuoteShell(name))
}

func (r *remover) dir(name string, fi fs.FileInfo, depth int) bool {
	if !r.recursive && !r.dirs {
		return r.cannot(name, syscall.EISDIR)
	}
	if r.oneFS && inode.Of(fi).Dev != r.device {
		r.Fault("skipping %s, since it's on a different device", gnu.QuoteShell(name))
		return false
	}
	ok := true
	if r.recursive {
		list, err := r.FS.ReadDir(r.Path(name))
		if err != nil {
			return r.cannot(name, err)
		}
		if depth > gnu.MaxDepth {
			return r.cannot(name, syscall.ENAMETOOLONG)
		}
		if r.ask && len(list) > 0 && !yes(r.Work, &r.stdin, "descend into directory %s?", gnu.QuoteShell(name)) {
			return false
		}
		for _, e := range list {
			if !r.remove(gnu.Join(name, e.Name()), depth+1) {
				ok = false
			}
		}
	}
	if !ok {
		return false
	}
	if r.ask && !yes(r.Work, &r.stdin, "remove directory %s?", gnu.QuoteShell(name)) {
		return false
	}
	if err := r.FS.Remove(r.Path(name)); err != nil {
		return r.cannot(name, err)
	}
	if r.verbose {
		fmt.Fprintf(r.Out, "removed directory %s\n", gnu.QuoteShell(name))
	}
	return ok
}

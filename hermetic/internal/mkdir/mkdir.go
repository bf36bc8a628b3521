package mkdir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/modes"
)

// ModeOption reads the value of -m against what a new file would get.
func ModeOption(w *gnu.Work, sets []command.Set, all modes.Bits, dir bool) (bits modes.Bits, given, ok bool) {
	for _, s := range sets {
		if s.Name != "mode" {
			continue
		}
		c, err := modes.Parse(s.Value)
		if err != nil {
			w.Die(1, "invalid mode %s", gnu.Quote(s.Value))
			return 0, true, false
		}
		bits, given = c.Apply(all, dir, w.Umask), true
	}
	return bits, given, true
}

func mkdir(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... DIRECTORY...", "m,mode: p,parents v,verbose Z,context::")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	bits, given, ok := ModeOption(w, sets, 0o777&^modes.Of(w.Umask), true)
	if !ok {
		return
	}
	d := &DirMaker{Work: w, Verbose: gnu.Has(sets, "verbose"), As: "created directory"}
	for _, n := range names {
		made := false
		if gnu.Has(sets, "parents") {
			made = d.Parents(n)
		} else {
			made = d.make(n, 0o777)
		}
		if made && given {
			if err := w.FS.Chmod(w.Path(n), bits.FileMode()); err != nil {
				w.Fault("cannot set permissions of %s: %s", gnu.Quote(n), command.Reason(err))
			}
		}
	}
}

// DirMaker makes directories, with a word about each.
type DirMaker struct {
	*gnu.Work
	Verbose bool
	As      string
}

// make makes one directory.
func (d *DirMaker) make(name string, perm fs.FileMode) bool {
	err := syscall.ENOENT
	if name != "" {
		e := d.FS.Mkdir(d.Path(name), perm&^d.Umask)
		if e == nil {
			if d.Verbose {
				fmt.Fprintf(d.Out, "%s: %s %s\n", d.Args[0], d.As, gnu.QuoteShell(name))
			}
			return true
		}
		d.Fault("cannot create directory %s: %s", gnu.Quote(name), command.Reason(e))
		return false
	}
	d.Fault("cannot create directory %s: %s", gnu.Quote(name), command.Reason(err))
	return false
}

// Parents makes a directory and those it lies in; made is false when it was
// there.
func (d *DirMaker) Parents(name string) (made bool) {
	if name == "" {
		return d.make(name, 0)
	}
	for at := 0; at <= len(name); {
		for at < len(name) && name[at] == '/' {
			at++
		}
		end := strings.IndexByte(name[at:], '/')
		if end < 0 {
			end = len(name)
		} else {
			end += at
		}
		part := name[:end]
		if at == end {
			break
		}
		made = false
		if fi, err := gnu.Stat(d.Work, part); err != nil || !fi.IsDir() {
			if err == nil {
				word := syscall.ENOTDIR
				if strings.Trim(name[end:], "/") == "" {
					word = syscall.EEXIST
				}
				d.Fault("cannot create directory %s: %s", gnu.Quote(part), command.Reason(word))
				return false
			}
			perm := fs.FileMode(0o777)
			if made = d.make(part, perm); !made {
				return false
			}
		}
		at = end
	}
	return made
}

func rmdir(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... DIRECTORY...", "p,parents v,verbose ,ignore-fail-on-non-empty")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	for _, n := range names {
		word := "failed to remove"
		for {
			if gnu.Has(sets, "verbose") {
				fmt.Fprintf(w.Out, "%s: removing directory, %s\n", w.Args[0], gnu.QuoteShell(n))
			}
			if err := removeDir(w, n); err != nil {
				if !errors.Is(err, syscall.ENOTEMPTY) || !gnu.Has(sets, "ignore-fail-on-non-empty") {
					w.Fault("%s %s: %s", word, gnu.QuoteShell(n), command.Reason(err))
				}
				break
			}
			t := gnu.TrimSlashes(n)
			at := strings.LastIndexByte(t, '/')
			if !gnu.Has(sets, "parents") || at <= 0 {
				break
			}
			n, word = gnu.TrimSlashes(t[:at]), "failed to remove directory"
		}
	}
}

func removeDir(w *gnu.Work, name string) error {
	fi, err := gnu.Lstat(w, name)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return syscall.ENOTDIR
	case gnu.Last(name) == ".":
		return syscall.EINVAL
	}
	return w.FS.Remove(w.Path(name))
}

// unlink is unlink(1).
func unlink(w *gnu.Work) {
	_, names, ok := w.Options("FILE", "")
	switch {
	case !ok || w.Extra(names, 1):
		return
	case len(names) == 0:
		w.TryHelp("missing operand")
		return
	}
	fi, err := gnu.Lstat(w, names[0])
	if err == nil && fi.IsDir() {
		err = syscall.EISDIR
	}
	if err == nil {
		err = w.FS.Remove(w.Path(names[0]))
	}
	if err != nil {
		w.Fault("cannot unlink %s: %s", gnu.QuoteShell(names[0]), command.Reason(err))
	}
}

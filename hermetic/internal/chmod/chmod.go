package chmod

import (
	"fmt"
	"io/fs"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/modes"
)

// moder is one call of chmod.
type moder struct {
	*gnu.Work
	change                             modes.Change
	recursive, verbose, changes, quiet bool
	minus                              bool // the mode came as an option: "-x"
}

func chmod(w *gnu.Work) {
	m := &moder{Work: w}
	args, mode := modeArgument(w.Args)
	call := *w.Call
	call.Args = args
	saved := w.Call
	w.Call = &call
	sets, names, ok := w.Options("[OPTION]... MODE[,MODE]... FILE...", "c,changes f,silent ,quiet v,verbose R,recursive ,no-preserve-root ,preserve-root ,reference:")
	w.Call = saved
	if !ok {
		return
	}
	reference := ""
	for _, s := range sets {
		switch s.Name {
		case "changes":
			m.changes = true
		case "silent", "quiet":
			m.quiet = true
		case "verbose":
			m.verbose = true
		case "recursive":
			m.recursive = true
		case "reference":
			reference = s.Value
		}
	}
	m.minus = mode != ""
	if mode == "" && reference == "" && len(names) > 0 {
		mode, names = names[0], names[1:]
	}
	switch {
	case len(names) == 0 && mode == "" && reference == "":
		w.TryHelp("missing operand")
		return
	case len(names) == 0 && mode != "" && !m.minus:
		w.TryHelp("missing operand after %s", gnu.Quote(mode))
		return
	case len(names) == 0:
		w.TryHelp("missing operand")
		return
	}
	if !m.read(mode, reference) {
		return
	}
	for _, n := range names {
		m.one(n, 0)
	}
}

// modeArgument takes modes such as "-x" out of the arguments.
func modeArgument(args []string) (rest []string, mode string) {
	rest = args[:1:1]
	for i, a := range args[1:] {
		if a == "--" {
			return append(rest, args[1+i:]...), mode
		}
		if len(a) > 1 && a[0] == '-' && strings.IndexByte("rwxXstugoa,+=01234567", a[1]) >= 0 {
			if mode != "" {
				mode += ","
			}
			mode += a
			continue
		}
		rest = append(rest, a)
	}
	return rest, mode
}

func (m *moder) read(mode, reference string) bool {
	if reference != "" {
		fi, err := gnu.Stat(m.Work, reference)
		if err != nil {
			m.Die(1, "failed to get attributes of %s: %s", gnu.QuoteShell(reference), command.Reason(err))
			return false
		}
		mode = fmt.Sprintf("%05o", uint32(modes.Of(fi.Mode())))
	}
	var err error
	if m.change, err = modes.Parse(mode); err != nil {
		m.TryHelp("invalid mode: %s", gnu.Quote(mode))
		return false
	}
	return true
}

func (m *moder) one(name string, depth int) {
	if m.Ctx.Err() != nil {
		return
	}
	link, err := gnu.Lstat(m.Work, name)
	if err == nil && link.Mode()&fs.ModeSymlink != 0 && depth > 0 {
		return
	}
	fi, err2 := gnu.Stat(m.Work, name)
	if err == nil && err2 != nil {
		m.Status = 1
		if !m.quiet {
			m.Complain("cannot operate on dangling symlink %s", gnu.QuoteShell(name))
		}
		return
	}
	if err != nil {
		m.Status = 1
		if !m.quiet {
			m.Complain("cannot access %s: %s", gnu.QuoteShell(name), command.Reason(err))
		}
		if m.verbose {
			fmt.Fprintf(m.Out, "%s could not be accessed\n", gnu.QuoteShell(name))
		}
		return
	}
	m.set(name, fi)
	if m.recursive && fi.IsDir() && depth < gnu.MaxDepth {
		list, err := m.FS.ReadDir(m.Path(name))
		if err != nil && !m.quiet {
			m.Fault("cannot read directory %s: %s", gnu.QuoteShell(name), command.Reason(err))
		}
		for _, e := range list {
			m.one(gnu.Join(name, e.Name()), depth+1)
		}
	}
}

func (m *moder) set(name string, fi fs.FileInfo) {
	old := modes.Of(fi.Mode())
	want := m.change.Apply(old, fi.IsDir(), m.Umask)
	if err := m.FS.Chmod(m.Path(name), want.FileMode()); err != nil {
		m.Status = 1
		if !m.quiet {
			m.Complain("changing permissions of %s: %s", gnu.QuoteShell(name), command.Reason(err))
		}
		return
	}
	letters := func(b modes.Bits) string { return modes.String(b.FileMode())[1:] }
	switch {
	case old != want && (m.verbose || m.changes):
		fmt.Fprintf(m.Out, "mode of %s changed from %04o (%s) to %04o (%s)\n", gnu.QuoteShell(name), uint32(old), letters(old), uint32(want), letters(want))
	case m.verbose:
		fmt.Fprintf(m.Out, "mode of %s retained as %04o (%s)\n", gnu.QuoteShell(name), uint32(want), letters(want))
	}
	if m.minus {
		if naive := m.change.Apply(old, fi.IsDir(), 0); want&^naive != 0 {
			m.Fault("%s: new permissions are %s, not %s", gnu.QuoteName(name), letters(want), letters(naive))
		}
	}
}

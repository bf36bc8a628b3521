package cp

import (
	"errors"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/mkdir"
	"egressd/hermetic/internal/modes"
	"egressd/hermetic/internal/realpath"
)

func install(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [-T] SOURCE DEST",
		"b ,backup:: c C,compare d,directory D g,group: m,mode: o,owner: p,preserve-timestamps s,strip ,strip-program: S,suffix: t,target-directory: T,no-target-directory v,verbose ,preserve-context Z,context::")
	if !ok {
		return
	}
	k := newCopier(w)
	k.follow, k.force, k.removeDest = "always", true, true
	bits, _, ok := mkdir.ModeOption(w, sets, 0, gnu.Has(sets, "directory"))
	if !ok {
		return
	}
	if !gnu.Has(sets, "mode") {
		bits = 0o755
	}
	k.mode = &bits
	leading := false
	for _, s := range sets {
		switch s.Name {
		case "c", "C", "compare", "mode", "directory", "owner", "group", "strip-program":
		case "D":
			leading = true
		case "preserve-timestamps":
			k.keepTimes = true
		case "strip":
			w.Refuse("--strip")
			return
		default:
			if !k.shared(s) {
				return
			}
		}
	}
	d := &mkdir.DirMaker{Work: w, Verbose: k.verbose, As: "creating directory"}
	if gnu.Has(sets, "directory") {
		installDirs(d, names, bits)
		return
	}
	if leading && k.targetSet && !gnu.IsDir(w, k.target) {
		d.Parents(k.target)
	} else if leading && !k.targetSet && len(names) == 2 {
		if p := realpath.Parent(names[1]); !gnu.IsDir(w, p) && !d.Parents(p) {
			return
		}
	}
	k.operands(names, func(src, dst string) {
		if fi, err := gnu.Lstat(w, dst); err == nil && !fi.IsDir() && k.backup == "" && !k.sameName(src, dst) {
			if err := w.FS.Remove(w.Path(dst)); err != nil && !errors.Is(err, syscall.ENOENT) {
				w.Fault("cannot remove %s: %s", gnu.QuoteShell(dst), command.Reason(err))
				return
			}
			if k.verbose {
				k.say("removed %s\n", gnu.QuoteShell(dst))
			}
		}
		k.one(src, dst, 0)
	})
}

func installDirs(d *mkdir.DirMaker, names []string, bits modes.Bits) {
	if len(names) == 0 {
		d.TryHelp("missing file operand")
		return
	}
	for _, n := range names {
		if !gnu.IsDir(d.Work, n) && !d.Parents(n) {
			continue
		}
		if err := d.FS.Chmod(d.Path(n), bits.FileMode()); err != nil {
			d.Fault("cannot change permissions of %s: %s", gnu.QuoteShell(n), command.Reason(err))
		}
	}
}

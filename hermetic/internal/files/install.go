package files

import (
	"syscall"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/modes"
)

func install(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [-T] SOURCE DEST",
		"b ,backup:: c C,compare d,directory D g,group: m,mode: o,owner: p,preserve-timestamps s,strip ,strip-program: S,suffix: t,target-directory: T,no-target-directory v,verbose ,preserve-context Z,context::")
	if !ok {
		return
	}
	k := newCopier(w)
	k.follow, k.force, k.removeDest = "always", true, true
	bits, _, ok := modeOption(w, sets, 0, has(sets, "directory"))
	if !ok {
		return
	}
	if !has(sets, "mode") {
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
	d := &dirMaker{Work: w, verbose: k.verbose, as: "creating directory"}
	if has(sets, "directory") {
		installDirs(d, names, bits)
		return
	}
	if leading && k.targetSet && !isDir(w, k.target) {
		d.parents(k.target)
	} else if leading && !k.targetSet && len(names) == 2 {
		if p := parent(names[1]); !isDir(w, p) && !d.parents(p) {
			return
		}
	}
	k.operands(names, func(src, dst string) {
		if fi, err := lstat(w, dst); err == nil && !fi.IsDir() && k.backup == "" && !k.sameName(src, dst) {
			if err := w.FS.Remove(w.Path(dst)); err != nil && !is(err, syscall.ENOENT) {
				w.Fault("cannot remove %s: %s", q(dst), reason(err))
				return
			}
			if k.verbose {
				k.say("removed %s\n", q(dst))
			}
		}
		k.one(src, dst, 0)
	})
}

func installDirs(d *dirMaker, names []string, bits modes.Bits) {
	if len(names) == 0 {
		d.TryHelp("missing file operand")
		return
	}
	for _, n := range names {
		if !isDir(d.Work, n) && !d.parents(n) {
			continue
		}
		if err := d.FS.Chmod(d.Path(n), bits.FileMode()); err != nil {
			d.Fault("cannot change permissions of %s: %s", q(n), reason(err))
		}
	}
}

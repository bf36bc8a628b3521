package cp

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
	"egressd/hermetic/internal/realpath"
)

// existing decides about something that is at dst: whether to go on, and if
// not whether all is well.
func (k *copier) existing(src, dst string, from, to fs.FileInfo) (backup string, goOn, ok bool) {
	if same, done := k.same(src, dst, from, to); same {
		return "", false, done
	}
	real := to
	if fi, err := k.FS.Stat(k.Path(dst)); err == nil && !k.move && from.Mode()&fs.ModeSymlink == 0 {
		real = fi
	}
	if !from.IsDir() {
		switch {
		case k.update && newer(from.ModTime(), real.ModTime()):
			return "", false, true
		case k.noClobber:
			return "", false, true
		case k.ask && !k.overwrite(dst, real):
			return "", false, true
		}
	}
	switch {
	case real.IsDir() && !from.IsDir():
		if k.backup == "" || !k.move {
			k.Fault("cannot overwrite directory %s with non-directory", gnu.QuoteShell(dst))
			return "", false, false
		}
	case from.IsDir() && !real.IsDir() && (k.backup == "" || !k.move):
		k.Fault("cannot overwrite non-directory %s with directory %s", gnu.QuoteShell(dst), gnu.QuoteShell(src))
		return "", false, false
	case !from.IsDir() && k.made[inode.KeyOf(to)] && (k.backup == "" || k.backup == "simple"):
		k.Fault("will not overwrite just-created %s with %s", gnu.QuoteShell(dst), gnu.QuoteShell(src))
		return "", false, false
	}
	if k.backup != "" && (!from.IsDir() || k.move) && gnu.Last(dst) != "." && gnu.Last(dst) != ".." {
		backup, ok = k.saveAs(dst)
		return backup, ok, ok
	}
	if k.removeDest && !to.IsDir() {
		if err := k.FS.Remove(k.Path(dst)); err != nil {
			k.Fault("cannot remove %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return "", false, false
		}
		if k.verbose {
			k.say("removed %s\n", gnu.QuoteShell(dst))
		}
	}
	return "", true, true
}

func ternary(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

// same deals with src and dst being one file; handled is false when they are
// not, or when it does no harm.
func (k *copier) same(src, dst string, from, to fs.FileInfo) (handled, ok bool) {
	sl, errS := k.FS.Lstat(k.Path(src))
	dl := to
	oneName := errS == nil && inode.KeyOf(sl) == inode.KeyOf(dl)
	one := oneName
	if !k.move && from.Mode()&fs.ModeSymlink == 0 {
		if fi, err := k.FS.Stat(k.Path(dst)); err == nil && inode.KeyOf(fi) == inode.KeyOf(from) {
			one = true
		}
	}
	if !one || from.IsDir() && !oneName && !k.move && k.recursive && dl.Mode()&fs.ModeSymlink != 0 {
		return false, true
	}
	if (k.hard || k.removeDest || k.backup != "") && !k.sameName(src, dst) {
		return k.hard && oneName, true
	}
	if k.hard && !k.move {
		return true, true
	}
	if k.move && from.IsDir() && strings.HasPrefix(dst, gnu.TrimSlashes(src)+"/") {
		k.Fault("cannot move %s to a subdirectory of itself, %s", gnu.QuoteShell(src), gnu.QuoteShell(dst))
		return true, false
	}
	k.Fault("%s and %s are the same file", gnu.QuoteShell(src), gnu.QuoteShell(dst))
	return true, false
}

// sameName says whether two names are one entry of one directory.
func (k *copier) sameName(a, b string) bool {
	x, errX := k.FS.Resolve(k.Path(realpath.Parent(a)))
	y, errY := k.FS.Resolve(k.Path(realpath.Parent(b)))
	return errX == nil && errY == nil && x == y && gnu.Last(a) == gnu.Last(b)
}

func (k *copier) overwrite(dst string, to fs.FileInfo) bool {
	if to.Mode()&fs.ModeSymlink == 0 && k.FS.Access(k.Path(dst), 2) != nil {
		b := modes.Of(to.Mode())
		if k.move || k.force {
			return k.yes("replace %s, overriding mode %04o (%s)?", gnu.QuoteShell(dst), uint32(b), modes.String(to.Mode())[1:])
		}
		return k.yes("unwritable %s (mode %04o, %s); try anyway?", gnu.QuoteShell(dst), uint32(b), modes.String(to.Mode())[1:])
	}
	return k.yes("overwrite %s?", gnu.QuoteShell(dst))
}

// saveAs renames dst to its backup.
func (k *copier) saveAs(dst string) (string, bool) {
	name := backupName(k, dst)
	if err := k.FS.Rename(k.Path(dst), k.Path(name)); err != nil {
		k.Fault("cannot backup %s: %s", gnu.QuoteShell(dst), command.Reason(err))
		return "", false
	}
	return name, true
}

func backupName(k *copier, dst string) string {
	dst = gnu.TrimSlashes(dst)
	highest := 0
	if k.backup != "simple" {
		list, _ := k.FS.ReadDir(k.Path(realpath.Parent(dst)))
		for _, e := range list {
			tail, ok := strings.CutPrefix(e.Name(), gnu.Last(dst)+".~")
			if n, err := strconv.Atoi(strings.TrimSuffix(tail, "~")); ok && err == nil && strings.HasSuffix(tail, "~") {
				highest = max(highest, n)
			}
		}
	}
	if k.backup == "numbered" || k.backup == "existing" && highest > 0 {
		return fmt.Sprintf("%s.~%d~", dst, highest+1)
	}
	return dst + k.suffix
}

// rename moves src; to another file system by copying and removing.
func (k *copier) rename(src, dst string, from, to fs.FileInfo, backup string) bool {
	err := k.FS.Rename(k.Path(src), k.Path(dst))
	switch {
	case err == nil:
		if k.verbose {
			k.say("renamed ")
			k.announce(src, dst, backup)
		}
		k.record(dst)
		return true
	case errors.Is(err, syscall.EINVAL):
		k.Fault("cannot move %s to a subdirectory of itself, %s", gnu.QuoteShell(src), gnu.QuoteShell(dst))
		return false
	case !errors.Is(err, syscall.EXDEV):
		k.Fault("cannot move %s to %s: %s", gnu.QuoteShell(src), gnu.QuoteShell(dst), command.Reason(err))
		return false
	}
	if to != nil {
		if err := k.FS.Remove(k.Path(dst)); err != nil {
			k.Fault("inter-device move failed: %s to %s; unable to remove target: %s", gnu.QuoteShell(src), gnu.QuoteShell(dst), command.Reason(err))
			return false
		}
	}
	if k.verbose && !from.IsDir() {
		k.say("copied ")
		k.announce(src, dst, backup)
	}
	if !k.transfer(src, dst, from, nil, backup, 0) {
		return false
	}
	r := &remover{Work: k.Work, recursive: true, force: true, verbose: k.verbose}
	return r.remove(src, 0)
}

package cp

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

// copier is what cp, mv and install share.
type copier struct {
	*gnu.Work
	move      bool
	recursive bool
	follow    string // "never", "operands", "always"

	keepMode, keepTimes, keepLinks bool
	plainMode                      bool // --no-preserve=mode

	force, ask, noClobber, update, verbose bool

	hard, soft bool // link instead of copying
	parents    bool
	backup     string // "", "simple", "numbered", "existing"
	suffix     string
	removeDest bool
	attrOnly   bool
	oneFS      bool
	strip      bool

	target    string // -t
	targetSet bool
	noTarget  bool // -T

	mode   *modes.Bits // install's
	stdin  *bufio.Reader
	links  map[inode.Key]string
	made   map[inode.Key]bool // what this call has made
	device uint64

	topSrc, topDst string // the operands
	several        bool
	given          map[inode.Key]string // sources so far, and where they went
}

// operands works out where each source goes, and hands it over.
func (k *copier) operands(names []string, each func(src, dst string)) {
	dir := k.target
	switch {
	case len(names) == 0:
		k.TryHelp("missing file operand")
		return
	case k.noTarget && k.targetSet:
		k.Die(1, "cannot combine --target-directory (-t) and --no-target-directory (-T)")
		return
	case k.targetSet:
		if fi, err := gnu.Stat(k.Work, dir); err != nil || !fi.IsDir() {
			k.Die(1, "target directory %s: %s", gnu.QuoteShell(dir), orNotDir(err))
			return
		}
	case len(names) == 1:
		k.TryHelp("missing destination file operand after %s", gnu.QuoteShell(names[0]))
		return
	case k.noTarget && len(names) > 2:
		k.TryHelp("extra operand %s", gnu.QuoteShell(names[2]))
		return
	default:
		dst := names[len(names)-1]
		fi, err := gnu.Stat(k.Work, dst)
		if k.noTarget || len(names) == 2 && (err != nil || !fi.IsDir()) {
			each(names[0], dst)
			return
		}
		if err != nil || !fi.IsDir() {
			k.Die(1, "target %s: %s", gnu.QuoteShell(dst), orNotDir(err))
			return
		}
		dir, names = dst, names[:len(names)-1]
	}
	k.several = len(names) > 1
	for _, src := range names {
		if k.Ctx.Err() != nil {
			return
		}
		if k.strip {
			src = gnu.TrimSlashes(src)
		}
		if k.parents {
			k.withParents(dir, src, each)
			continue
		}
		base := gnu.Last(src)
		if base == ".." || base == "/" {
			base = "."
		}
		each(src, gnu.Join(dir, base))
	}
}

func orNotDir(err error) string {
	if err != nil {
		return command.Reason(err)
	}
	return command.Reason(syscall.ENOTDIR)
}

// withParents makes the directories of src below dir first.
func (k *copier) withParents(dir, src string, each func(src, dst string)) {
	clean := strings.TrimLeft(gnu.TrimSlashes(src), "/")
	parts := strings.Split(clean, "/")
	prefix := strings.Repeat("/", min(1, len(src)-len(strings.TrimLeft(src, "/"))))
	for i := 1; i < len(parts); i++ {
		part := strings.Join(parts[:i], "/")
		dst := gnu.Join(dir, part)
		if _, err := k.FS.Stat(k.Path(dst)); err == nil {
			continue
		}
		fi, err := gnu.Stat(k.Work, prefix+part)
		if err != nil {
			k.Fault("failed to get attributes of %s: %s", gnu.QuoteShell(prefix+part), command.Reason(err))
			return
		}
		if err := k.FS.Mkdir(k.Path(dst), fi.Mode().Perm()&^k.Umask); err != nil {
			k.Fault("cannot make directory %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return
		}
		if k.verbose {
			k.say("%s -> %s\n", prefix+part, dst)
		}
	}
	each(src, gnu.Join(dir, clean))
}

func (k *copier) say(format string, args ...any) { fmt.Fprintf(k.Out, format, args...) }

// one copies or moves src to dst, and reports whether it did.
func (k *copier) one(src, dst string, depth int) bool {
	if k.Ctx.Err() != nil {
		return false
	}
	follow := k.follow == "always" || k.follow == "operands" && depth == 0
	from, err := gnu.Lstat(k.Work, src)
	if err == nil && follow {
		from, err = gnu.Stat(k.Work, src)
	}
	switch {
	case err != nil:
		k.Fault("cannot stat %s: %s", gnu.QuoteShell(src), command.Reason(err))
		return false
	case from.IsDir() && !k.recursive && !k.move:
		if k.Args[0] == "install" {
			k.Fault("omitting directory %s", gnu.QuoteShell(src))
		} else {
			k.Fault("-r not specified; omitting directory %s", gnu.QuoteShell(src))
		}
		return false
	case depth > gnu.MaxDepth:
		k.Fault("cannot stat %s: %s", gnu.QuoteShell(src), command.Reason(syscall.ENAMETOOLONG))
		return false
	case depth == 0:
		k.device, k.topSrc, k.topDst = inode.Of(from).Dev, src, dst
		if first, again := k.given[inode.KeyOf(from)]; k.several && again && (!from.IsDir() || first == dst) && !k.move {
			k.Complain("warning: source %s %s specified more than once", ternary(from.IsDir(), "directory", "file"), gnu.QuoteShell(src))
			return true
		}
		k.given[inode.KeyOf(from)] = dst
	}
	to, err := gnu.Lstat(k.Work, dst)
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		k.Fault("cannot stat %s: %s", gnu.QuoteShell(dst), command.Reason(err))
		return false
	}
	backup := ""
	if err == nil {
		var goOn, ok bool
		if backup, goOn, ok = k.existing(src, dst, from, to); !goOn {
			return ok
		}
		if backup != "" || k.removeDest && !to.IsDir() {
			to = nil
		}
	} else {
		to = nil
	}
	if k.move && depth == 0 {
		return k.rename(src, dst, from, to, backup)
	}
	return k.transfer(src, dst, from, to, backup, depth)
}

// transfer makes dst what src is; to is what is there, nil: nothing.
func (k *copier) transfer(src, dst string, from, to fs.FileInfo, backup string, depth int) bool {
	if k.verbose && !k.move && !from.IsDir() {
		k.announce(src, dst, backup)
	}
	n := inode.Of(from)
	if k.keepLinks && n.Links > 1 && !from.IsDir() {
		if first, ok := k.links[inode.KeyOf(from)]; ok {
			return k.hardlink(first, dst, to)
		}
		defer func() { k.links[inode.KeyOf(from)] = dst }()
	}
	m := from.Mode()
	switch {
	case m.IsDir():
		return k.dir(src, dst, from, to, depth)
	case k.hard:
		return k.hardlink(src, dst, to)
	case k.soft:
		return k.softlink(src, dst, to)
	case m&fs.ModeSymlink != 0:
		return k.link(src, dst, to)
	case m.IsRegular() || !k.recursive || m&fs.ModeDevice != 0:
		return k.file(src, dst, from, to)
	}
	k.Fault("cannot create special file %s: Operation not permitted", gnu.QuoteShell(dst))
	return false
}

func (k *copier) announce(src, dst, backup string) {
	if backup != "" {
		k.say("%s -> %s (backup: %s)\n", gnu.QuoteShell(src), gnu.QuoteShell(dst), gnu.QuoteShell(backup))
	} else {
		k.say("%s -> %s\n", gnu.QuoteShell(src), gnu.QuoteShell(dst))
	}
}

func (k *copier) record(dst string) {
	if fi, err := k.FS.Lstat(k.Path(dst)); err == nil {
		k.made[inode.KeyOf(fi)] = true
	}
}

// away removes what is in the way of something that is not written into.
func (k *copier) away(dst string, to fs.FileInfo) error {
	if to == nil {
		return nil
	}
	return k.FS.Remove(k.Path(dst))
}

// dir copies a directory and what is in it.
func (k *copier) dir(src, dst string, from, to fs.FileInfo, depth int) bool {
	if k.made[inode.KeyOf(from)] {
		k.Fault("cannot copy a directory, %s, into itself, %s", gnu.QuoteShell(k.topSrc), gnu.QuoteShell(k.topDst))
		return false
	}
	if to == nil {
		perm := from.Mode().Perm()
		if err := k.FS.Mkdir(k.Path(dst), perm&^k.Umask|0o700); err != nil {
			k.Fault("cannot create directory %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return false
		}
		if k.verbose {
			if k.move {
				k.say("created directory %s\n", gnu.QuoteShell(dst))
			} else {
				k.say("%s -> %s\n", gnu.QuoteShell(src), gnu.QuoteShell(dst))
			}
		}
		if fi, err := k.FS.Lstat(k.Path(dst)); err == nil {
			k.made[inode.KeyOf(fi)] = true
		}
	}
	ok := true
	if k.oneFS && inode.Of(from).Dev != k.device {
		return ok
	}
	list, err := k.FS.ReadDir(k.Path(src))
	if err != nil {
		k.Fault("cannot access %s: %s", gnu.QuoteShell(src), command.Reason(err))
		ok = false
	}
	for _, e := range list {
		child := gnu.Join(src, e.Name())
		if fi, err := k.FS.Lstat(k.Path(child)); err == nil && fi.IsDir() && k.made[inode.KeyOf(fi)] {
			k.Fault("cannot copy a directory, %s, into itself, %s", gnu.QuoteShell(k.topSrc), gnu.QuoteShell(k.topDst))
			ok = false
			continue
		}
		if !k.one(child, gnu.Join(dst, e.Name()), depth+1) {
			ok = false
		}
	}
	if to == nil || k.keepMode {
		k.attributes(dst, from, to == nil)
	} else if k.keepTimes {
		_ = k.FS.Chtimes(k.Path(dst), inode.Of(from).Atime, from.ModTime(), true)
	}
	return ok
}

// attributes gives dst the mode and the times of from that are kept.
func (k *copier) attributes(dst string, from fs.FileInfo, created bool) {
	if k.keepTimes {
		if err := k.FS.Chtimes(k.Path(dst), inode.Of(from).Atime, from.ModTime(), true); err != nil {
			k.Fault("preserving times for %s: %s", gnu.QuoteShell(dst), command.Reason(err))
		}
	}
	bits := modes.Of(from.Mode())
	switch {
	case k.mode != nil:
		bits = *k.mode
	case k.keepMode:
	case created && from.IsDir():
		bits &^= modes.Of(k.Umask)
		bits &= 0o777
	default:
		return
	}
	if err := k.FS.Chmod(k.Path(dst), bits.FileMode()); err != nil {
		k.Fault("preserving permissions for %s: %s", gnu.QuoteShell(dst), command.Reason(err))
	}
}

// yes asks on the standard error and reads the answer.
func (k *copier) yes(format string, args ...any) bool {
	return yes(k.Work, &k.stdin, format, args...)
}

func yes(w *gnu.Work, stdin **bufio.Reader, format string, args ...any) bool {
	_ = w.Out.Flush()
	fmt.Fprintf(w.Stderr, "%s: %s ", w.Args[0], fmt.Sprintf(format, args...))
	if *stdin == nil {
		*stdin = bufio.NewReader(w.Stdin)
	}
	line, err := (*stdin).ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = (*stdin).ReadSlice('\n')
	}
	return len(line) > 0 && (line[0] == 'y' || line[0] == 'Y')
}

// newer says whether dst is as new as src.
func newer(src, dst time.Time) bool { return !dst.Before(src) }

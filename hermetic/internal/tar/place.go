package tar

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// clear takes away what is in the way of a member; false: it stays.
func (x *extractor) clear(m later, i fs.FileInfo) bool {
	switch {
	case x.skipOld:
		return false
	case x.keep && m.h.Typeflag == tar.TypeSymlink:
		x.fault("%s: Cannot create symlink to %s: File exists", m.name, gnu.Quote(m.h.Linkname))
		return false
	case x.keep && m.h.Typeflag == tar.TypeLink:
		if t, err := x.FS.Lstat(x.Path(x.under(x.dir, m.h.Linkname))); err == nil && inode.Same(t, i) {
			return false
		}
		x.fault("%s: Cannot hard link to %s: File exists", m.name, gnu.Quote(m.h.Linkname))
		return false
	case x.keep:
		x.fault("%s: Cannot open: File exists", m.name)
		return false
	case x.keepNewer && !i.ModTime().Before(m.h.ModTime):
		x.Complain("Current '%s' is newer or same age", m.name)
		return false
	}
	if err := x.FS.Remove(m.full); err != nil {
		x.fault("%s: Cannot open: %s", m.name, command.Reason(err))
		return false
	}
	return true
}

// parents makes the directories on the way to a file.
func (x *extractor) parents(full string) error {
	for i := 1; i < len(full); i++ {
		if full[i] != '/' {
			continue
		}
		if err := x.FS.Mkdir(full[:i], 0o777&^x.Umask); err != nil && !errors.Is(err, syscall.EEXIST) {
			return err
		}
	}
	return nil
}

func (x *extractor) directory(m later) {
	m.full = strings.TrimRight(m.full, "/")
	if m.full == "" {
		return
	}
	err := x.parents(m.full)
	if err == nil {
		err = x.FS.Mkdir(m.full, 0o700)
	}
	if errors.Is(err, syscall.EEXIST) {
		if i, serr := x.FS.Stat(m.full); serr == nil && i.IsDir() {
			err = nil
		}
	}
	if err != nil {
		x.fault("%s: Cannot mkdir: %s", strings.TrimSuffix(m.name, "/"), command.Reason(err))
		return
	}
	x.dirs = append(x.dirs, m)
}

func (x *extractor) perm(h *tar.Header) fs.FileMode {
	p := fs.FileMode(h.Mode) & 0o777
	if !x.samePerm {
		p &^= x.Umask
	}
	return p
}

func (x *extractor) regular(in *tar.Reader, m later) error {
	open := func() (io.WriteCloser, error) {
		return x.FS.OpenFile(m.full, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, x.perm(m.h))
	}
	f, err := open()
	if errors.Is(err, syscall.ENOENT) {
		if err = x.parents(m.full); err == nil {
			f, err = open()
		}
	}
	if err != nil {
		x.fault("%s: Cannot open: %s", m.name, command.Reason(err))
		return nil
	}
	b := bufio.NewWriterSize(f, 64<<10)
	rerr := gnu.Pour(b, in)
	err = b.Flush()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	switch {
	case x.Ctx.Err() != nil:
		return x.Ctx.Err()
	case err != nil:
		x.fault("%s: Cannot write: %s", m.name, command.Reason(err))
		return nil
	case errors.Is(rerr, io.ErrUnexpectedEOF):
		return x.cutOff()
	case rerr != nil:
		return x.corrupt(rerr)
	}
	x.times(m)
	return nil
}

func (x *extractor) times(m later) {
	if !x.touch {
		_ = x.FS.Chtimes(m.full, time.Time{}, m.h.ModTime, false)
	}
}

func (x *extractor) hardLink(m later, dir string) {
	from := x.stripped(x.transformed(x.safe(m.h.Linkname, "hard link targets")))
	target := x.Path(x.under(dir, from))
	err := x.FS.Link(target, m.full)
	if errors.Is(err, syscall.ENOENT) {
		if err = x.parents(m.full); err == nil {
			err = x.FS.Link(target, m.full)
		}
	}
	if err != nil {
		x.fault("%s: Cannot hard link to %s: %s", m.name, gnu.Quote(from), command.Reason(err))
	}
}

// settle makes the links, and then sets modes and times of directories, inner
// ones first.
func (x *extractor) settle() {
	for _, m := range x.links {
		err := x.FS.Symlink(m.h.Linkname, m.full)
		if errors.Is(err, syscall.ENOENT) {
			if err = x.parents(m.full); err == nil {
				err = x.FS.Symlink(m.h.Linkname, m.full)
			}
		}
		if err != nil {
			x.fault("%s: Cannot create symlink to %s: %s", m.name, gnu.Quote(m.h.Linkname), command.Reason(err))
			continue
		}
		x.times(m)
	}
	for i := len(x.dirs) - 1; i >= 0; i-- {
		m := x.dirs[i]
		if err := x.FS.Chmod(m.full, x.perm(m.h)); err != nil {
			x.fault("%s: Cannot change mode: %s", m.name, command.Reason(err))
		}
		x.times(m)
	}
}

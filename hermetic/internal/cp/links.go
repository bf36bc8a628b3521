package cp

import (
	"io/fs"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

func (k *copier) hardlink(src, dst string, to fs.FileInfo) bool {
	if to != nil && (k.force || k.keepLinks) {
		if err := k.away(dst, to); err != nil {
			k.Fault("cannot remove %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return false
		}
	}
	if err := k.FS.Link(k.Path(src), k.Path(dst)); err != nil {
		k.Fault("cannot create hard link %s to %s: %s", gnu.QuoteShell(dst), gnu.QuoteShell(src), command.Reason(err))
		return false
	}
	return true
}

func (k *copier) softlink(src, dst string, to fs.FileInfo) bool {
	if to != nil && k.force {
		_ = k.away(dst, to)
	}
	if !strings.HasPrefix(src, "/") && strings.Contains(trimDot(dst), "/") {
		k.Fault("%s: can make relative symbolic links only in current directory", gnu.QuoteName(dst))
		return false
	}
	if err := k.FS.Symlink(src, k.Path(dst)); err != nil {
		k.Fault("cannot create symbolic link %s to %s: %s", gnu.QuoteShell(dst), gnu.QuoteShell(src), command.Reason(err))
		return false
	}
	return true
}

func trimDot(s string) string { return strings.TrimPrefix(s, "./") }

// link copies a symbolic link.
func (k *copier) link(src, dst string, to fs.FileInfo) bool {
	target, err := k.FS.Readlink(k.Path(src))
	if err != nil {
		k.Fault("cannot read symbolic link %s: %s", gnu.QuoteShell(src), command.Reason(err))
		return false
	}
	if err = k.away(dst, to); err == nil {
		err = k.FS.Symlink(target, k.Path(dst))
	}
	if err != nil {
		k.Fault("cannot create symbolic link %s: %s", gnu.QuoteShell(dst), command.Reason(err))
		return false
	}
	if k.keepTimes {
		if fi, err := k.FS.Lstat(k.Path(src)); err == nil {
			_ = k.FS.Chtimes(k.Path(dst), inode.Of(fi).Atime, fi.ModTime(), false)
		}
	}
	k.record(dst)
	return true
}

package cp

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// file copies what can be read.
func (k *copier) file(src, dst string, from, to fs.FileInfo) bool {
	in, err := k.FS.Open(k.Path(src))
	if err != nil {
		k.Fault("cannot open %s for reading: %s", gnu.QuoteShell(src), command.Reason(err))
		return false
	}
	defer in.Close()
	out, created, ok := k.create(dst, from, to)
	if !ok {
		return false
	}
	var faulty error
	if !k.attrOnly {
		_, faulty = io.Copy(out, &ctxReader{k, in})
	}
	if err := out.Close(); faulty == nil {
		faulty = err
	}
	if faulty != nil {
		if k.Ctx.Err() == nil {
			k.Fault("error writing %s: %s", gnu.QuoteShell(dst), command.Reason(faulty))
		}
		return false
	}
	if created {
		k.record(dst)
	}
	k.attributes(dst, from, created)
	return true
}

type ctxReader struct {
	k *copier
	r io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.k.Ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// create opens dst to write, made new where nothing is.
func (k *copier) create(dst string, from, to fs.FileInfo) (out io.WriteCloser, created, ok bool) {
	perm := from.Mode().Perm() &^ k.Umask
	if !from.Mode().IsRegular() || k.plainMode {
		perm = 0o666 &^ k.Umask
	}
	if k.mode != nil {
		perm = 0o600
	}
	if to != nil {
		f, err := k.FS.OpenFile(k.Path(dst), syscall.O_WRONLY|gnu.Flag(!k.attrOnly, syscall.O_TRUNC), 0)
		if err == nil {
			return f, false, true
		}
		if to.Mode()&fs.ModeSymlink != 0 && errors.Is(err, syscall.ENOENT) {
			k.Fault("not writing through dangling symlink %s", gnu.QuoteShell(dst))
			return nil, false, false
		}
		if !k.force {
			k.Fault("cannot create regular file %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return nil, false, false
		}
		if err := k.FS.Remove(k.Path(dst)); err != nil {
			k.Fault("cannot remove %s: %s", gnu.QuoteShell(dst), command.Reason(err))
			return nil, false, false
		}
		if k.verbose {
			k.say("removed %s\n", gnu.QuoteShell(dst))
		}
	}
	f, err := k.FS.OpenFile(k.Path(dst), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, perm)
	if err != nil {
		if errors.Is(err, syscall.EISDIR) && strings.HasSuffix(dst, "/") {
			err = syscall.ENOTDIR
		}
		k.Fault("cannot create regular file %s: %s", gnu.QuoteShell(dst), command.Reason(err))
		return nil, false, false
	}
	return f, true, true
}

package machine

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Bounds of one archive.
const (
	maxArchiveFiles = 200_000
	maxArchiveBytes = 4 << 30 // unpacked
)

func (a *agent) open(r request) {
	f, err := openRegular(resolve(r.Dir, r.Path))
	if err != nil {
		a.answer(r, err)
		return
	}
	defer f.Close()
	a.answer(r, nil, f)
}

// openRegular opens path unless it is a pipe or a device, which might never
// end.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func mkdir(path string, recursive bool) error {
	make := os.Mkdir
	if recursive {
		make = os.MkdirAll
	}
	err := make(path, 0o755)
	var no syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return &Error{Kind: BadFile, Text: "error creating directory: " + path + ": File exists"}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: BadFile, Text: "error creating directory: No such file or directory"} // a parent
	case errors.As(err, &no) && len(no.Error()) > 0:
		return &Error{Kind: BadFile, Text: "error creating directory: " + strings.ToUpper(no.Error()[:1]) + no.Error()[1:]}
	}
	return &Error{Kind: BadFile, Text: "error creating directory: " + err.Error()}
}

func (a *agent) extract(r request, from *os.File) {
	defer from.Close()
	a.answer(r, extract(r.Dir, from))
}

func extract(dir string, from io.Reader) error {
	z, err := gzip.NewReader(bufio.NewReaderSize(from, 64<<10))
	if err != nil {
		return fmt.Errorf("the archive is not gzip: %w", err)
	}
	limited := &io.LimitedReader{R: z, N: maxArchiveBytes}
	t := tar.NewReader(limited)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		}
		if limited.N <= 0 || n >= maxArchiveFiles {
			return fmt.Errorf("the archive is larger than %d bytes or %d files", int64(maxArchiveBytes), maxArchiveFiles)
		}
		if err != nil {
			return fmt.Errorf("the archive: %w", err)
		}
		if err := unpack(resolve(dir, path.Clean("/" + h.Name)[1:]), h, t); err != nil {
			return err
		}
	}
}

// unpack makes what one entry of an archive says, in the place of what is there.
func unpack(name string, h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return os.Chmod(name, h.FileInfo().Mode().Perm())
	}
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if fi, err := os.Lstat(name); err == nil && !fi.IsDir() {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return writeFile(name, h, content)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, name)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return &Error{Kind: BadFile, Text: fmt.Sprintf("%s: entries of type %q are not unpacked", h.Name, h.Typeflag)}
}

func writeFile(name string, h *tar.Header, content io.Reader) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	return f.Chmod(h.FileInfo().Mode().Perm())
}

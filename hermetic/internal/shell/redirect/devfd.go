package redirect

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/vfs"
)

// openFD is a descriptor that a command opened by its name below /dev.
type openFD struct {
	stream.Bound
	file *stream.File
	once sync.Once
}

func (o *openFD) Close() error {
	var err error
	o.once.Do(func() { err = o.file.Close() })
	return err
}

func (o *openFD) ReadAt(p []byte, off int64) (int, error) {
	if u := o.file.Under(); u != nil {
		return u.ReadAt(p, off)
	}
	return 0, syscall.ESPIPE
}

func (o *openFD) Truncate(size int64) error {
	if u := o.file.Under(); u != nil {
		return u.Truncate(size)
	}
	return syscall.EINVAL
}

// Name is the path below /dev.
func (o *openFD) Name() string { return o.file.Name() }

var _ io.ReaderAt = (*openFD)(nil)

// DevFD is the descriptor that a path means, such as /dev/fd/3; -1 if it means
// none.
func DevFD(path string) int {
	switch path {
	case "/dev/stdin":
		return 0
	case "/dev/stdout":
		return 1
	case "/dev/stderr":
		return 2
	}
	if rest, ok := strings.CutPrefix(path, "/dev/fd/"); ok {
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// View is the files of the session as one command sees them: /dev/fd is its own
// descriptors.
func View(fs *vfs.FS, fds map[int]*stream.File, bound func(*stream.File) stream.Bound) *vfs.FS {
	return fs.WithDescriptors(func(n, flag int) (vfs.File, error) {
		f := fds[n]
		if f == nil {
			return nil, syscall.ENOENT
		}
		if f = f.Dup(); flag == syscall.O_RDONLY {
			defer f.Close()
			f = stream.Again(f)
		}
		return &openFD{Bound: bound(f), file: f}, nil
	})
}

package shell

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"egressd/sandbox/hermetic/shell/stream"
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

func (o *openFD) Seek(offset int64, whence int) (int64, error) {
	if u := o.file.Under(); u != nil {
		return u.Seek(offset, whence)
	}
	return 0, syscall.ESPIPE
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

// Stat is that of the file, or of a pipe.
func (o *openFD) Stat() (fs.FileInfo, error) {
	if u := o.file.Under(); u != nil {
		return u.Stat()
	}
	return pipeInfo{}, nil
}

var _ io.ReaderAt = (*openFD)(nil)

// pipeInfo is what stat says of a pipe.
type pipeInfo struct{}

func (pipeInfo) Name() string       { return "pipe" }
func (pipeInfo) Size() int64        { return 0 }
func (pipeInfo) Mode() fs.FileMode  { return fs.ModeNamedPipe | 0o600 }
func (pipeInfo) ModTime() time.Time { return time.Unix(0, 0) }
func (pipeInfo) IsDir() bool        { return false }

// Sys is nothing: vfs.Sys makes something of the mode.
func (pipeInfo) Sys() any { return nil }

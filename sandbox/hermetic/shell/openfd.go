package shell

import (
	"io"
	"sync"
	"syscall"

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

package stream

import (
	"context"
	"io"
	"sync"
	"syscall"
)

// Again opens f once more, as opening it by its name below /dev does: a regular
// file has an offset of its own that begins at 0, as in Linux; anything else is
// f itself with one more owner. The caller closes it.
func Again(f *File) *File {
	if f.at == nil || f.read == nil || f.write != nil {
		return f.Dup()
	}
	if info, err := f.stat(); err != nil || !info.Mode().IsRegular() {
		return f.Dup()
	}
	f.Dup()
	p := &place{file: f}
	g := &File{Kind: f.Kind, name: f.name, under: f.under, read: p.read, seek: p.seek, at: f.at, stat: f.stat, close: f.Close}
	g.refs.Store(1)
	return g
}

// place is an offset in a file.
type place struct {
	file *File
	mu   sync.Mutex
	here int64
}

func (p *place) read(_ context.Context, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.file.at(b, p.here)
	p.here += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (p *place) seek(offset int64, whence int) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += p.here
	case io.SeekEnd:
		info, err := p.file.stat()
		if err != nil {
			return p.here, err
		}
		offset += info.Size()
	}
	if offset < 0 {
		return p.here, syscall.EINVAL
	}
	p.here = offset
	return offset, nil
}

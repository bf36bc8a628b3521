package vfs

import (
	"io"
	"io/fs"
	"path"
	"sync"
	"syscall"
)

// Open opens name for reading; a directory, too.
func (f *FS) Open(name string) (File, error) { return f.OpenFile(name, syscall.O_RDONLY, 0) }

// OpenFile is open(2): flags are those of package os. perm is used as it is:
// the caller has taken the umask off.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	how := follow
	if flag&syscall.O_NOFOLLOW != 0 || flag&syscall.O_CREAT != 0 && flag&syscall.O_EXCL != 0 {
		how = 0
	}
	if flag&syscall.O_CREAT != 0 {
		how |= creating
	}
	var got File
	for range maxRaces {
		err := f.at("open", name, how, func(p *place) (err error) {
			got, err = f.openAt(p, name, flag, perm)
			return err
		})
		if d, ok := got.(descriptor); ok && err == nil {
			return f.descriptor(d.n, name, flag)
		}
		// A link where the walk saw none was put there meanwhile: walk again.
		if isErr(err, syscall.ELOOP) && how&follow != 0 {
			if _, lerr := f.Stat(name); lerr == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		return got, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
}

func (f *FS) openAt(p *place, name string, flag int, perm fs.FileMode) (File, error) {
	if dev, ok := p.d.(*devDir); ok && p.leaf != "." {
		return dev.device(p.leaf, name, flag)
	}
	if p.slash {
		if flag&syscall.O_CREAT != 0 && p.leaf != "." {
			return nil, syscall.EISDIR
		}
		flag |= syscall.O_DIRECTORY
	}
	if p.readOnly() {
		if err := p.onlyRead(flag); err != nil {
			return nil, err
		}
		flag &^= syscall.O_CREAT
	}
	h, err := p.d.open(p.leaf, flag, permOf(perm)&0o777)
	if err != nil {
		return nil, err
	}
	return &file{name: name, h: h, written: f.written, access: flag & 3}, nil
}

// onlyRead refuses to open for writing what is in .git.
func (p *place) onlyRead(flag int) error {
	a, err := p.d.lstat(p.leaf)
	switch {
	case isErr(err, syscall.ENOENT) && flag&syscall.O_CREAT != 0:
		return syscall.EROFS
	case err != nil:
		return err
	}
	if err := mayOpen(a, flag); err != nil {
		return err
	}
	if flag&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC) != 0 {
		return syscall.EROFS
	}
	return nil
}

// file is what every File is: it gives errors the name inside, and counts.
type file struct {
	name    string
	h       handle
	written func(n int64) error
	access  int // O_RDONLY, O_WRONLY or O_RDWR

	mu     sync.Mutex // guards what follows, and orders writes
	sought bool       // the next write may begin beyond the end
}

func (f *file) Name() string { return f.name }

func (f *file) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: errnoOf(err)}
}

func (f *file) Read(p []byte) (int, error) {
	if f.access == syscall.O_WRONLY {
		return 0, f.fail("read", syscall.EBADF)
	}
	n, err := f.h.read(p)
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return n, f.fail("read", err)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if f.access == syscall.O_WRONLY {
		return 0, f.fail("read", syscall.EBADF)
	}
	all := 0
	for all < len(p) {
		n, err := f.h.pread(p[all:], off+int64(all))
		all += n
		if err != nil {
			return all, f.fail("read", err)
		}
		if n == 0 {
			return all, io.EOF
		}
	}
	return all, nil
}

func (f *file) Write(p []byte) (int, error) {
	if f.access == syscall.O_RDONLY {
		return 0, f.fail("write", syscall.EBADF)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.count(int64(len(p))); err != nil {
		return 0, f.fail("write", err)
	}
	n, err := f.h.write(p)
	return n, f.fail("write", err)
}

// count asks for room for n bytes at where the file stands, and for the hole
// that they leave behind them.
//
// Threat: a seek far beyond the end and one byte make a file that is huge for
// who reads it, and costs nothing -> holes count as written.
func (f *file) count(n int64) error {
	if f.sought {
		f.sought = false
		at, err := f.h.seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		a, err := f.h.stat()
		if err != nil {
			return err
		}
		n += max(at-a.Size, 0)
	}
	if err := f.written(n); err != nil {
		return syscall.ENOSPC
	}
	return nil
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sought = true
	at, err := f.h.seek(off, whence)
	return at, f.fail("seek", err)
}

func (f *file) Truncate(size int64) error {
	if f.access == syscall.O_RDONLY || size < 0 {
		return f.fail("truncate", syscall.EINVAL)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sought = true // what is written next may leave a hole
	a, err := f.h.stat()
	if err == nil && size > a.Size {
		err = f.written(size - a.Size)
		if err != nil {
			err = syscall.ENOSPC
		}
	}
	if err == nil {
		err = f.h.truncate(size)
	}
	return f.fail("truncate", err)
}

func (f *file) Stat() (fs.FileInfo, error) {
	a, err := f.h.stat()
	if err != nil {
		return nil, f.fail("stat", err)
	}
	return &info{path.Base(f.name), a}, nil
}

func (f *file) Close() error { return f.fail("close", f.h.close()) }

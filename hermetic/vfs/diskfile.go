package vfs

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// How often an open is tried again when the file was swapped meanwhile.
const maxRaces = 16

func (d *diskDir) open(name string, flag int, perm uint32) (handle, error) {
	for range maxRaces {
		a, err := d.lstat(name)
		if isErr(err, syscall.ENOENT) && flag&syscall.O_CREAT != 0 {
			h, err := d.create(name, flag, perm)
			if isErr(err, syscall.EEXIST) && flag&syscall.O_EXCL == 0 {
				continue
			}
			return h, err
		}
		if err != nil {
			return nil, err
		}
		if err := mayOpen(a, flag); err != nil {
			return nil, err
		}
		h, err := d.openSame(name, a, flag)
		if h != nil || err != nil {
			return h, err
		}
	}
	return nil, syscall.ELOOP
}

// mayOpen is what open(2) says before it looks at the content.
//
// Threat: a device, FIFO or socket in the workspace is a way to the kernel or to
// another process, and an open of it can hang -> only files and directories are
// opened. Left over: none; what was opened is looked at again.
func mayOpen(a *Attr, flag int) error {
	writing := flag&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC) != 0
	switch k := a.kind(); {
	case flag&syscall.O_CREAT != 0 && flag&syscall.O_EXCL != 0:
		return syscall.EEXIST
	case k == syscall.S_IFLNK:
		return syscall.ELOOP
	case flag&syscall.O_DIRECTORY != 0 && k != syscall.S_IFDIR:
		return syscall.ENOTDIR
	case k == syscall.S_IFDIR && (writing || flag&syscall.O_CREAT != 0):
		return syscall.EISDIR
	case k == syscall.S_IFSOCK:
		return syscall.ENXIO
	case k != syscall.S_IFREG && k != syscall.S_IFDIR:
		return syscall.EACCES
	}
	var want uint32
	if flag&syscall.O_WRONLY == 0 {
		want |= 4
	}
	if writing {
		want |= 2
	}
	if !may(a.Mode, want) {
		return syscall.EACCES
	}
	return nil
}

func (d *diskDir) create(name string, flag int, perm uint32) (handle, error) {
	if err := d.can(3); err != nil {
		return nil, err
	}
	if err := d.t.make(); err != nil {
		return nil, err
	}
	keep := flag & (syscall.O_WRONLY | syscall.O_RDWR | syscall.O_APPEND)
	fd, err := openAt(d.fd, name, keep|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	h := newDiskFile(fd)
	// The worker's own umask is not the script's.
	if a, err := h.stat(); err == nil && a.Mode&0o777 != perm&0o777 {
		_ = unix.Fchmod(fd, perm)
	}
	return h, nil
}

// openSame opens what a describes; nil without an error: it was swapped.
func (d *diskDir) openSame(name string, a *Attr, flag int) (handle, error) {
	writing := flag&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC) != 0
	if writing && !d.t.links.whole(a) {
		return nil, d.part(name, a)
	}
	keep := flag & (syscall.O_WRONLY | syscall.O_RDWR | syscall.O_APPEND | syscall.O_DIRECTORY)
	if flag&syscall.O_TRUNC != 0 && keep&(syscall.O_WRONLY|syscall.O_RDWR) == 0 {
		keep |= syscall.O_RDWR
	}
	fd, err := openAt(d.fd, name, keep, 0)
	switch {
	case isErr(err, syscall.ENOENT), isErr(err, syscall.ELOOP):
		return nil, nil // lstat sees what is there now
	case err != nil:
		return nil, err
	}
	h := newDiskFile(fd)
	now, err := h.stat()
	switch {
	case err != nil:
	case now.Dev != a.Dev || now.Ino != a.Ino || now.kind() != a.kind() || writing && !d.t.links.whole(now):
		_ = h.close()
		return nil, nil
	case now.Dev != d.t.dev:
		err = notKernel(fd)
	}
	if err == nil && flag&syscall.O_TRUNC != 0 {
		err = h.truncate(0)
	}
	if err != nil {
		_ = h.close()
		return nil, err
	}
	return h, nil
}

type diskFile struct{ f *os.File }

func newDiskFile(fd int) *diskFile { return &diskFile{os.NewFile(uintptr(fd), "file")} }

func (h *diskFile) read(p []byte) (int, error) { return ended(h.f.Read(p)) }

func (h *diskFile) pread(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, syscall.EINVAL
	}
	return ended(h.f.ReadAt(p, off))
}

func (h *diskFile) write(p []byte) (int, error) { return h.f.Write(p) }

func (h *diskFile) seek(off int64, whence int) (int64, error) { return h.f.Seek(off, whence) }

func (h *diskFile) truncate(size int64) error { return h.f.Truncate(size) }

func (h *diskFile) close() error { return h.f.Close() }

func (h *diskFile) stat() (a *Attr, err error) {
	raw, err := h.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	cerr := raw.Control(func(fd uintptr) { a, err = fstat(int(fd)) })
	return a, firstErr(cerr, err)
}

// ended takes io.EOF off: the end is 0 and nil here.
func ended(n int, err error) (int, error) {
	if err == io.EOF {
		err = nil
	}
	return n, err
}

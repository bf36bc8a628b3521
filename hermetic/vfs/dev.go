package vfs

import (
	"crypto/rand"
	"io/fs"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// devices are what /dev has, with their numbers on Linux.
var devices = map[string]uint64{
	"null": 0x103, "zero": 0x105, "full": 0x107, "random": 0x108, "urandom": 0x109,
	"tty": 0x500, "stdin": 0x8800, "stdout": 0x8800, "stderr": 0x8800, "fd": 0,
}

func isDevice(name string) bool { _, ok := devices[name]; return ok }

// How many descriptors have names.
const maxDescriptor = 1 << 16

// devDir is /dev, or /dev/fd.
type devDir struct {
	f  *FS
	fd bool
}

func (d *devDir) tree() tree         { return d }
func (d *devDir) root() (dir, error) { return d, nil }
func (d *devDir) close()             {}

// number is which descriptor name means; -1: none.
func (d *devDir) number(name string) int {
	if !d.fd {
		return slices.Index([]string{"stdin", "stdout", "stderr"}, name)
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 || n >= maxDescriptor || strconv.Itoa(n) != name {
		return -1
	}
	return n
}

func (d *devDir) has(name string) bool {
	if d.fd {
		return d.number(name) >= 0
	}
	return isDevice(name)
}

func (d *devDir) sub(name string) (dir, error) {
	switch {
	case !d.has(name):
		return nil, syscall.ENOENT
	case !d.fd && name == "fd":
		return &devDir{f: d.f, fd: true}, nil
	}
	return nil, syscall.ENOTDIR
}

func (d *devDir) lstat(name string) (*Attr, error) {
	switch {
	case name == ".", !d.fd && name == "fd":
		return d.attr(syscall.S_IFDIR|0o555, 1), nil
	case !d.has(name):
		return nil, syscall.ENOENT
	}
	a := d.attr(syscall.S_IFCHR|0o666, 2)
	a.Rdev = 0x8800
	if !d.fd {
		a.Rdev = devices[name]
	}
	a.Ino += a.Rdev
	if d.fd { // two descriptors are not one file
		a.Ino += uint64(d.number(name)) << 16
	}
	return a, nil
}

func (d *devDir) attr(mode uint32, ino uint64) *Attr {
	t := time.Unix(0, 0)
	return &Attr{Dev: devDev, Ino: ino, Nlink: 1, Mode: mode, Uid: owner, Gid: owner, Blksize: 4096, Atime: t, Mtime: t, Ctime: t}
}

func (d *devDir) readlink(name string) (string, error) {
	if !d.has(name) {
		return "", syscall.ENOENT
	}
	return "", syscall.EINVAL
}

func (d *devDir) list() (all []entry, err error) {
	names := []string{"0", "1", "2"}
	if !d.fd {
		names = names[:0]
		for n := range devices {
			names = append(names, n)
		}
	}
	for _, n := range names {
		a, err := d.lstat(n)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{n, a})
	}
	return all, nil
}

func (d *devDir) access(name string, mode uint32) error {
	a, err := d.lstat(name)
	if err == nil && !may(a.Mode, mode) {
		err = syscall.EACCES
	}
	return err
}

// refuse is what every change of /dev gets.
func (d *devDir) refuse(name string) error {
	if name != "." && !d.has(name) {
		return syscall.EACCES
	}
	return syscall.EPERM
}

func (d *devDir) mkdir(name string, _ uint32) error      { return d.refuse(name) }
func (d *devDir) symlink(_, name string) error           { return d.refuse(name) }
func (d *devDir) remove(name string) error               { return d.refuse(name) }
func (d *devDir) chmod(name string, _ uint32) error      { return d.refuse(name) }
func (d *devDir) chtimes(_ string, _, _ time.Time) error { return nil }

func (d *devDir) rename(_ dir, name string, _ dir, _ string) error { return d.refuse(name) }
func (d *devDir) link(_ dir, name string, _ dir, _ string) error   { return d.refuse(name) }

// open is of the directory itself; device opens what is in it.
func (d *devDir) open(name string, flag int, _ uint32) (handle, error) {
	a, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if err := mayOpen(a, flag); err != nil {
		return nil, err
	}
	return &dirHandle{a}, nil
}

// device opens a device; of a descriptor it says only which one.
func (d *devDir) device(leaf, name string, flag int) (File, error) {
	a, err := d.lstat(leaf)
	switch {
	case err != nil && flag&syscall.O_CREAT != 0:
		return nil, syscall.EACCES
	case err != nil:
		return nil, err
	case a.isDir():
		h, err := d.open(leaf, flag, 0)
		return &file{name: name, h: h}, err
	case flag&syscall.O_CREAT != 0 && flag&syscall.O_EXCL != 0:
		return nil, syscall.EEXIST
	case flag&syscall.O_DIRECTORY != 0:
		return nil, syscall.ENOTDIR
	}
	if n := d.number(leaf); n >= 0 {
		return descriptor{n: n}, nil
	}
	if leaf == "tty" {
		return nil, syscall.ENXIO
	}
	return &file{name: name, h: &devFile{leaf, a}, access: flag & 3, written: free}, nil
}

// descriptor stands for a file that the view has, until no lock is held.
type descriptor struct {
	File
	n int
}

func (f *FS) descriptor(n int, name string, flag int) (File, error) {
	err := error(syscall.ENXIO)
	if f.descriptors != nil {
		var h File
		if h, err = f.descriptors(n, flag); err == nil {
			return h, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: errnoOf(err)}
}

// free counts nothing: what is written to a device is nowhere.
func free(int64) error { return nil }

type devFile struct {
	name string
	attr *Attr
}

func (h *devFile) read(p []byte) (int, error) {
	switch h.name {
	case "null":
		return 0, nil
	case "random", "urandom":
		return rand.Read(p)
	}
	clear(p)
	return len(p), nil
}

func (h *devFile) pread(p []byte, _ int64) (int, error) { return h.read(p) }

func (h *devFile) write(p []byte) (int, error) {
	if h.name == "full" {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

func (h *devFile) seek(int64, int) (int64, error) { return 0, nil }
func (h *devFile) stat() (*Attr, error)           { return h.attr, nil }
func (h *devFile) truncate(int64) error           { return syscall.EINVAL }
func (h *devFile) close() error                   { return nil }

// dirHandle is an open directory that only memory has.
type dirHandle struct{ attr *Attr }

func (h *dirHandle) read([]byte) (int, error)         { return 0, syscall.EISDIR }
func (h *dirHandle) pread([]byte, int64) (int, error) { return 0, syscall.EISDIR }
func (h *dirHandle) write([]byte) (int, error)        { return 0, syscall.EBADF }
func (h *dirHandle) seek(int64, int) (int64, error)   { return 0, nil }
func (h *dirHandle) stat() (*Attr, error)             { return h.attr, nil }
func (h *dirHandle) truncate(int64) error             { return syscall.EINVAL }
func (h *dirHandle) close() error                     { return nil }

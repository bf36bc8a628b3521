package vfs

import (
	"io/fs"
	"syscall"
	"time"
)

// Owner and group of everything, as every session sees it.
const owner = 1000

// Device numbers of what is not on a disk.
const (
	devTmp     = 0x1001
	devOverlay = 0x1002
	devDev     = 0x1003
)

// Attr is what stat(2) tells, the same on every platform.
type Attr struct {
	Dev, Ino, Nlink, Rdev uint64
	Mode                  uint32 // with the S_IFMT bits of Linux
	Uid, Gid              uint32
	Size, Blksize, Blocks int64 // blocks of 512 bytes
	Atime, Mtime, Ctime   time.Time
}

// Sys is all that fi, which a File or an FS gave, knows.
func Sys(fi fs.FileInfo) Attr {
	if i, ok := fi.(*info); ok {
		return *i.attr
	}
	a := Attr{Nlink: 1, Mode: uint32(fi.Mode().Perm()), Uid: owner, Gid: owner, Size: fi.Size(), Blksize: 4096, Mtime: fi.ModTime()}
	a.Atime, a.Ctime, a.Blocks = a.Mtime, a.Mtime, blocks(a.Size)
	switch m := fi.Mode(); {
	case m.IsDir():
		a.Mode |= syscall.S_IFDIR
	case m&fs.ModeNamedPipe != 0:
		a.Mode |= syscall.S_IFIFO
	case m&fs.ModeSocket != 0:
		a.Mode |= syscall.S_IFSOCK
	case m&fs.ModeCharDevice != 0:
		a.Mode |= syscall.S_IFCHR
	default:
		a.Mode |= syscall.S_IFREG
	}
	return a
}

func blocks(size int64) int64 { return (size + 4095) / 4096 * 8 }

func (a *Attr) kind() uint32 { return a.Mode & syscall.S_IFMT }

func (a *Attr) isDir() bool { return a.kind() == syscall.S_IFDIR }

// may reports whether the owner's bits of mode allow want, a sum of 4, 2 and 1:
// the session owns all that it sees, whoever the worker runs as.
func may(mode, want uint32) bool { return mode>>6&want == want }

func (a *Attr) fileMode() fs.FileMode {
	m := fs.FileMode(a.Mode & 0o777)
	for _, b := range []struct {
		bit  uint32
		mode fs.FileMode
	}{
		{syscall.S_ISUID, fs.ModeSetuid}, {syscall.S_ISGID, fs.ModeSetgid}, {syscall.S_ISVTX, fs.ModeSticky},
	} {
		if a.Mode&b.bit != 0 {
			m |= b.mode
		}
	}
	switch a.kind() {
	case syscall.S_IFDIR:
		m |= fs.ModeDir
	case syscall.S_IFLNK:
		m |= fs.ModeSymlink
	case syscall.S_IFIFO:
		m |= fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		m |= fs.ModeSocket
	case syscall.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case syscall.S_IFBLK:
		m |= fs.ModeDevice
	}
	return m
}

// permOf is the permission that a session may give: the setuid and setgid bits
// are dropped.
//
// Threat: a script leaves a setuid program in the workspace for somebody on the
// host to run -> the bits never reach the disk. Left over: none.
func permOf(m fs.FileMode) uint32 {
	p := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		p |= syscall.S_ISVTX
	}
	return p
}

type info struct {
	name string
	attr *Attr
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.attr.Size }
func (i *info) Mode() fs.FileMode  { return i.attr.fileMode() }
func (i *info) ModTime() time.Time { return i.attr.Mtime }
func (i *info) IsDir() bool        { return i.attr.isDir() }
func (i *info) Sys() any           { return i.attr.statT() }

// integer fits the fields of Stat_t, whose types differ by platform.
type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func put[T, V integer](field *T, v V) { *field = T(v) }

// timespec goes beyond the years that nanoseconds alone reach.
func timespec(t time.Time) (s syscall.Timespec) {
	put(&s.Sec, t.Unix())
	put(&s.Nsec, t.Nanosecond())
	return s
}

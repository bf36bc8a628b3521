// Package vfs is all the files that a hermetic session has: the workspace as
// "/", a /dev and a /tmp of its own, and nothing else of the machine.
//
// A name is walked one component at a time, and links are resolved here, inside:
// an absolute target starts at the workspace, ".." above it stays there. Every
// step and every operation holds an open directory and one plain name, and
// follows no link, so what another process swaps in meanwhile is refused.
//
// /dev and /tmp are there for who names them, and are not listed in "/". What
// is written below /tmp stays in memory, always; a tmp directory that the
// workspace has is seen through it and keeps its content. A dev directory of the
// workspace is seen, too, but for the names of the devices. Whatever is called
// .git is read-only, and none can be made.
package vfs

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// Config says what a file system is made of.
type Config struct {
	Dir     string // the workspace, a directory of the host
	Overlay bool   // keep every change in memory and the workspace as it is
	// Protect lists names inside, without links, that are read-only like .git:
	// what they name and what is in it can't be changed, moved or linked, and
	// their directories can't be moved.
	Protect []string

	// Written is told of every n bytes before they are written to a file; its
	// error refuses them. Nil: any number.
	Written func(n int64) error
	Memory  int64 // bytes that /tmp and an overlay may hold together; 0: 256 MiB
	Files   int64 // files and directories in each; 0: 100,000; ten times as many may be made in Dir
}

// FS is one session's file system. Every name is absolute inside ("/src/a.go").
// Errors are *fs.PathError or *os.LinkError over a syscall.Errno, and hold
// names inside only. Safe for concurrent use.
type FS struct {
	*state
	descriptors func(n, flag int) (File, error)
}

// state is what all views of one file system share.
type state struct {
	mu      sync.RWMutex // held for reading by every operation
	closed  bool
	written func(n int64) error
	disk    *disk
	work    tree // disk itself, or an overlay on it
	tmp     *mem
	over    *mem // nil without Overlay
	protect []string
}

// File is an open file or directory.
type File interface {
	io.ReadWriteCloser
	io.Seeker
	io.ReaderAt
	Name() string // as it was opened
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
}

// Change is one difference that an overlay holds.
type Change struct {
	Kind byte   // 'A' added, 'M' modified (content, mode or kind), 'D' deleted
	Path string // "/src/a.go"
}

// Open makes a file system. The caller closes it.
func Open(c Config) (*FS, error) {
	if c.Memory <= 0 {
		c.Memory = 256 << 20
	}
	if c.Files <= 0 {
		c.Files = 100_000
	}
	if c.Written == nil {
		c.Written = func(int64) error { return nil }
	}
	d, err := openDisk(c.Dir, c.Files*10, c.Written)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/", Err: errnoOf(err)}
	}
	s := &state{written: c.Written, disk: d, work: d, protect: c.Protect}
	room := &room{bytes: c.Memory}
	if c.Overlay {
		s.over = newMem(devOverlay, room, c.Files)
		s.over.lower, s.over.top.lower, s.over.top.hasLower = d, "", true
		if err := s.over.adopt(); err != nil {
			d.close()
			return nil, &fs.PathError{Op: "open", Path: "/", Err: errnoOf(err)}
		}
		s.work = s.over
	}
	s.tmp = newMem(devTmp, room, c.Files)
	if a, err := d.lstatPath("tmp"); err == nil && a.kind() == syscall.S_IFDIR {
		s.tmp.lower, s.tmp.top.lower, s.tmp.top.hasLower = d, "tmp", true
	}
	return &FS{state: s}, nil
}

// WithDescriptors is f as one command sees it: /dev/stdin, /dev/stdout,
// /dev/stderr and /dev/fd/N open what open gives for N and the flags of
// package os. It does not need to be closed. Without it they give ENXIO.
func (f *FS) WithDescriptors(open func(n, flag int) (File, error)) *FS {
	return &FS{state: f.state, descriptors: open}
}

// Close gives up what the file system holds; files that are open stay so.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: "/", Err: syscall.EBADF}
	}
	f.closed = true
	f.disk.close()
	return nil
}

// Changes lists what an overlay holds, sorted by path; nil without Overlay.
// /tmp and /dev are in it never.
func (f *FS) Changes() ([]Change, error) {
	if err := f.enter(); err != nil {
		return nil, &fs.PathError{Op: "changes", Path: "/", Err: err}
	}
	defer f.mu.RUnlock()
	if f.over == nil {
		return nil, nil
	}
	all, err := f.over.changes()
	if err != nil {
		return nil, &fs.PathError{Op: "changes", Path: "/", Err: errnoOf(err)}
	}
	return all, nil
}

// enter begins an operation; the caller unlocks mu for reading when it is nil.
func (s *state) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return syscall.EBADF
	}
	return nil
}

package redirect

import (
	"io/fs"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
)

// openFor opens path for an operator. It reports false after a message.
func openFor(sh *state.Shell, path string, op syntax.RedirOperator) (*stream.File, bool) {
	flag := 0
	switch op {
	case syntax.RdrIn:
		flag = syscall.O_RDONLY
	case syntax.RdrInOut:
		flag = syscall.O_RDWR | syscall.O_CREAT
	case syntax.AppOut, syntax.AppAll:
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	default:
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
		if op != syntax.RdrClob && sh.Options.On(options.NoClobber) {
			if info, err := sh.Session.FS.Stat(state.Join(sh.Dir.Path, path)); err == nil && info.Mode().IsRegular() {
				sh.Errorf("%s: cannot overwrite existing file", path)
				return nil, false
			}
		}
	}
	f, err := Open(sh, path, flag)
	if err != nil {
		sh.Errorf("%s: %s", path, command.Reason(err))
		return nil, false
	}
	return f, true
}

// OpenRead opens a file for reading. It reports false after a message.
func OpenRead(sh *state.Shell, path string) (*stream.File, bool) {
	return openFor(sh, path, syntax.RdrIn)
}

// Open opens a path: a descriptor of this shell by its name below /dev, or a
// file of the session.
func Open(sh *state.Shell, path string, flag int) (*stream.File, error) {
	if path == "" {
		return nil, syscall.ENOENT
	}
	full := state.Join(sh.Dir.Path, path)
	if n := DevFD(full); n >= 0 {
		f := sh.FDs.Open[n]
		if f == nil {
			return nil, syscall.ENOENT
		}
		if flag == syscall.O_RDONLY {
			return stream.Again(f), nil
		}
		return f.Dup(), nil
	}
	if strings.HasPrefix(full, "/dev/tcp/") || strings.HasPrefix(full, "/dev/udp/") {
		return nil, syscall.ENOENT
	}
	under, err := sh.Session.FS.OpenFile(full, flag, 0o666&^sh.Dir.Mask())
	if err != nil {
		return nil, err
	}
	acc := flag & 3
	return stream.Of(under, acc != syscall.O_WRONLY, acc != syscall.O_RDONLY), nil
}

// Stat describes a file, following links. A name below /dev/fd is a descriptor
// of this shell.
func Stat(sh *state.Shell, name string) (fs.FileInfo, error) {
	full := state.Join(sh.Dir.Path, name)
	if n := DevFD(full); n >= 0 {
		if sh.FDs.Open[n] == nil {
			return nil, fs.ErrNotExist
		}
		return sh.Stream(n).Stat()
	}
	return sh.Session.FS.Stat(full)
}

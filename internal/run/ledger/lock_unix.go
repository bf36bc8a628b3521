//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrInUse is that a journal is that of a run under way.
var ErrInUse = errors.New("in use")

// create makes a journal and locks it for as long as this process lives or keeps it
// open. It has its name only when it is locked: else Recover would take it for one
// that was left.
func create(name string) (*os.File, error) {
	made := name + ".new"
	f, err := os.OpenFile(made, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lock(f); err == nil {
		err = os.Rename(made, name)
	}
	if err != nil {
		_ = os.Remove(made)
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// private reports an error unless a file is this user's alone.
func private(info os.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return errors.New("others may read it: chmod 600")
	}
	return nil
}

// claim opens a journal whose launcher is gone, and locks it; ErrInUse: it lives.
func claim(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	// Whoever had the lock may have removed the file meanwhile.
	held, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Lstat(name); err == nil && !os.SameFile(held, there) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrInUse
		}
		return os.NewSyscallError("flock", err)
	}
}

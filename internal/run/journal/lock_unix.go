//go:build unix

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock holds f until it is closed or this process is gone.
func lock(f *os.File) error {
	return os.NewSyscallError("flock", flock(f, syscall.LOCK_EX|syscall.LOCK_NB))
}

// held reports whether another process, or this one by another file, holds f.
func held(f *os.File) bool {
	err := flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		err = flock(f, syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// private reports an error unless dir is a directory of this user alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it is no directory of user %d", os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return errors.New("others may open it: chmod 700")
	}
	return nil
}

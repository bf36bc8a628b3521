//go:build unix

package records

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock opens and locks a file. If another holds the lock it waits, or reports
// errBusy. Closing the file unlocks it, and so does the death of this process.
func (s *Store) lock(name string, wait bool) (*os.File, error) {
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
			continue
		}
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, os.NewSyscallError("flock", err)
	}
}

var errBusy = errors.New("in use")

// private reports an error if others than this user can open the directory.
func private(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others may open it: chmod 700")
	}
	return nil
}

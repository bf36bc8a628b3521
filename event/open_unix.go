//go:build unix

package event

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openAppend opens path without following a link in its last component.
// O_NONBLOCK makes a FIFO without a reader an error instead of a hang.
func openAppend(path string) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	var fd int
	var err error
	for {
		fd, err = unix.Open(path, flags, 0o600)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("events file %q is a symbolic link: name the file it points to", path)
	case errors.Is(err, unix.ENXIO):
		return nil, fmt.Errorf("events file %q: nobody reads this pipe: start its reader first", path)
	case errors.Is(err, unix.EISDIR):
		return nil, fmt.Errorf("events file %q is a directory: name a file in it", path)
	case errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("events file %q: %w: make its directory first", path, err)
	case err != nil:
		return nil, fmt.Errorf("events file %q: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func dupFD(fd int, path string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("events file %q: %w", path, err)
	}
	return os.NewFile(uintptr(n), path), nil
}

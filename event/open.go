package event

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Open opens an events file for appending; it is made with mode 0600 when it
// does not exist. A last component that is a symbolic link is refused, as is a
// directory, and a FIFO that nobody reads. "/dev/stdout", "/dev/stderr" and
// "/dev/fd/N" (what a shell's >(...) makes) are duplicates of the descriptor.
// The caller closes the file.
func Open(path string) (*os.File, error) {
	switch path {
	case "/dev/stdout":
		return dupFD(1, path)
	case "/dev/stderr":
		return dupFD(2, path)
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			if fd, err := strconv.Atoi(rest); err == nil {
				return dupFD(fd, path)
			}
		}
	}
	f, err := openAppend(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, closing(f, fmt.Errorf("events file: %w", err))
	}
	if info.IsDir() || info.Mode()&os.ModeSocket != 0 {
		return nil, closing(f, fmt.Errorf("events file %q is not a file: name a file, a pipe or -", path))
	}
	return f, nil
}

// closing closes f on the way out of an error.
func closing(f *os.File, err error) error {
	_ = f.Close() // nothing was written; err says what matters
	return err
}

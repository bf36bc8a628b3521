package inside

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// outputFile is a descriptor that the script prints to. Each write is one
// write(2), so that what both descriptors say stays in order.
type outputFile int

func (f outputFile) Write(p []byte) (n int, err error) {
	for n < len(p) {
		k, err := unix.Write(int(f), p[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN): // somebody outside made it so
			if err := f.wait(); err != nil {
				return n, err
			}
			continue
		case err != nil:
			return n, err
		}
		n += k
	}
	return n, nil
}

// Stat reports what kind of file it is.
func (f outputFile) Stat() (fs.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f), &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: "output", Err: err}
	}
	return outputInfo{st}, nil
}

// outputInfo is what a script sees of it.
type outputInfo struct{ st unix.Stat_t }

func (outputInfo) Name() string         { return "output" }
func (i outputInfo) Size() int64        { return i.st.Size }
func (i outputInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (outputInfo) IsDir() bool          { return false }
func (outputInfo) Sys() any             { return nil }

func (i outputInfo) Mode() fs.FileMode {
	m := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	return m
}

// wait waits until a descriptor that does not block takes more.
func (f outputFile) wait() error {
	_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(f), Events: unix.POLLOUT}}, nil, nil)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

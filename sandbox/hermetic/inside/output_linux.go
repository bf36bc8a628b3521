package inside

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"egressd/hermetic/limits"
)

// brokenWrites is how many writes into a closed pipe end the run. Each ends the
// command that tries it, as SIGPIPE would; more of them are a loop that does not
// care.
const brokenWrites = 16

// output is the script's way to the person, counted.
type output struct {
	budget *limits.Budget
	stop   context.CancelFunc
	closed atomic.Int32 // writes that found nobody to read them
}

func newOutput(b *limits.Budget, stop context.CancelFunc) *output {
	return &output{budget: b, stop: stop}
}

// broken reports whether the run was ended for want of a reader.
func (o *output) broken() bool { return o.closed.Load() >= brokenWrites }

// file is one descriptor of the output. Each write is one write(2), so that what
// both descriptors say stays in order.
func (o *output) file(fd int) io.Writer { return &outputFile{o, fd} }

type outputFile struct {
	*output
	fd int
}

func (f *outputFile) Write(p []byte) (n int, err error) {
	if err := f.budget.Output(int64(len(p))); err != nil {
		return 0, err
	}
	for n < len(p) {
		k, err := unix.Write(f.fd, p[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN): // somebody outside made it so
			if err := f.wait(); err != nil {
				return n, err
			}
			continue
		case errors.Is(err, unix.EPIPE):
			if f.closed.Add(1) == brokenWrites {
				f.stop()
			}
			return n, err
		case err != nil:
			return n, err
		}
		n += k
	}
	return n, nil
}

// Stat looks what kind of file it is.
func (f *outputFile) Stat() (fs.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: "output", Err: err}
	}
	return outputInfo{st}, nil
}

// outputInfo is what of it a script is told.
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
func (f *outputFile) wait() error {
	_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLOUT}}, nil, nil)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

//go:build unix

package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// readFile reads a standard input that is a file to its end: before anything is made
// at the service, since it may be too long. Nil: it is none, or empty.
func (r *run) readFile(ctx context.Context) (*spool, error) {
	kind, err := r.kindOfInput()
	if err != nil || !kind.IsRegular() {
		return nil, nil //nolint:nilerr // it is closed
	}
	s, err := newSpool()
	if err != nil {
		return nil, err
	}
	if err = s.fill(ctx, r.spec.Stdin); err != nil || s.size == 0 {
		s.close()
		return nil, err
	}
	return s, nil
}

// kindOfInput reports what the standard input is. No input is a device.
func (r *run) kindOfInput() (os.FileMode, error) {
	if r.spec.Stdin == nil {
		return os.ModeDevice, nil
	}
	info, err := r.spec.Stdin.Stat()
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// newSpool makes an empty one. The caller closes it.
func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "launch-stdin-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &spool{file: f}, nil
}

// fill copies all of the file f.
func (s *spool) fill(ctx context.Context, f *os.File) error {
	part := make([]byte, readBytes)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch ended, err := s.add(f, part); {
		case err != nil || ended:
			return err
		case s.size > maxStdin:
			return fmt.Errorf("it is longer than %d MiB: put it into a file of the workspace, or pass it through a pipe: cat FILE | launch", maxStdin>>20)
		}
	}
}

// begin takes what is on the pipe f already, up to a part, and reports whether that is
// all.
func (s *spool) begin(f *os.File) (ended bool, err error) {
	part := make([]byte, readBytes)
	for s.size <= partBytes-readBytes && !ended && err == nil && readable(f, nil, 0) {
		ended, err = s.add(f, part)
	}
	return ended, err
}

// add reads once from f.
func (s *spool) add(f *os.File, part []byte) (ended bool, err error) {
	n, err := readOnce(f, part)
	if err != nil {
		return errors.Is(err, io.EOF), ignoreEnd(err)
	}
	s.size += int64(n)
	_, err = s.file.Write(part[:n])
	return false, err
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// startInput makes the standard input there: of what readFile found, or of a pipe, which
// is read until the program ends. A terminal and a device are none.
func (r *run) startInput(ctx context.Context, s *spool) (*input, error) {
	if s != nil {
		return r.whole(ctx, s)
	}
	kind, err := r.kindOfInput()
	if err != nil || kind&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil, nil //nolint:nilerr // it is closed
	}
	if s, err = newSpool(); err != nil {
		return nil, err
	}
	defer s.close()
	ended, err := s.begin(r.spec.Stdin)
	switch {
	case err != nil || ended && s.size == 0:
		return nil, err
	case ended:
		return r.whole(ctx, s)
	}
	first := make([]byte, s.size)
	if _, err := s.file.ReadAt(first, 0); ignoreEnd(err) != nil {
		return nil, err
	}
	in := &input{r: r, read: make(chan chunk, partBytes/readBytes)}
	if in.wake, err = in.listen(r.spec.Stdin, first); err != nil {
		return nil, err
	}
	return in, in.stream(ctx)
}

// listen reads f, after first, into in.read until wake is called. A reader of the same
// pipe elsewhere may take what was there to be read: then this one goes on waiting, so
// nobody waits for it, and it has a descriptor of its own.
func (in *input) listen(f *os.File, first []byte) (wake func(), err error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	f = os.NewFile(uintptr(fd), f.Name()) // #nosec: a descriptor
	woken, waker, err := os.Pipe()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	over := make(chan struct{})
	put := func(c chunk) bool {
		select {
		case in.read <- c:
			return c.err == nil
		case <-over:
			return false
		}
	}
	go func() {
		defer woken.Close()
		defer f.Close()
		if len(first) > 0 && !put(chunk{data: first}) {
			return
		}
		for readable(f, woken, -1) {
			part := make([]byte, readBytes)
			n, err := readOnce(f, part)
			if !put(chunk{part[:n], err}) {
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		_ = waker.Close()
	}), nil
}

// readOnce reads from f. At its end the error is io.EOF; 0 bytes and no error say that
// there was nothing after all.
func readOnce(f *os.File, to []byte) (int, error) {
	n, err := unix.Read(int(f.Fd()), to)
	switch {
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// readable waits until f can be read, for wait milliseconds, -1 without end. It is
// false when the time is over or woken, which may be nil, is at its end.
func readable(f, woken *os.File, wait int) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} // #nosec: a descriptor
	if woken != nil {
		fds = append(fds, unix.PollFd{Fd: int32(woken.Fd()), Events: unix.POLLIN}) // #nosec: a descriptor
	}
	for {
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0 || woken != nil && fds[1].Revents != 0:
			return false
		default:
			return true
		}
	}
}

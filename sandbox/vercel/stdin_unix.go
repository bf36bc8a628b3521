//go:build unix

package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"egressd/sandbox/vercel/api"
)

// Bounds of a standard input that is sent.
const (
	maxStdin    = 1 << 30
	stdinPoll   = 100 * time.Millisecond // how often to check whether the run is over
	stdinReport = time.Second / 2        // when to report what the run waits for
)

// input is a standard input that was read to its end, in a file without a name.
// Nil: there is none. The caller closes it.
type input struct {
	file *os.File
	size int64
}

func (in *input) close() {
	if in != nil {
		_ = in.file.Close()
	}
}

// readInput reads the standard input to its end: a file, a pipe from a program of
// the same pipeline, however long that takes, or another pipe as soon as something
// has come on it, which is asked twice: before anything is made at the service, and
// (late) when the sandbox is ready. A terminal and a device have nothing that could
// be read ahead.
func (r *run) readInput(ctx context.Context, late bool) (*input, error) {
	f := r.spec.Stdin
	if f == nil {
		return nil, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil, nil //nolint:nilerr // it is closed
	}
	if !info.Mode().IsRegular() && !readable(f, 0) && !inPipeline(f) {
		r.notSent(late)
		return nil, nil
	}
	spool, err := os.CreateTemp("", "launch-stdin-")
	if err != nil {
		return nil, err
	}
	in := &input{file: spool}
	err = os.Remove(spool.Name())
	if err == nil {
		in.size, err = r.readAll(ctx, f, spool)
	}
	if errors.Is(err, errHeld) {
		in.close()
		r.notSent(late)
		return nil, nil
	}
	if err != nil || in.size == 0 {
		in.close()
		return nil, err
	}
	return in, nil
}

// errHeld: nothing has come on the pipe, and nobody is left who would write to it.
var errHeld = errors.New("nobody writes to the standard input")

// notSent says, the second time, that there was nothing to send.
func (r *run) notSent(late bool) {
	if late {
		r.say("the standard input is not sent: nothing has come on it yet, and it is still open")
	}
}

// sendInput writes the standard input into a file in the sandbox and reports its
// name; "" without one. in is what came before the sandbox was ready.
func (r *run) sendInput(ctx context.Context, in *input) (string, error) {
	if in == nil {
		var err error
		if in, err = r.readInput(ctx, true); in == nil {
			return "", err
		}
		defer in.close()
	}
	name := r.temporary("stdin")
	return name, r.Client.WriteFiles(ctx, r.session.id, slices.Values([]api.File{{
		Path: name, Mode: 0o600, Size: in.size,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(in.file, 0, in.size)), nil },
	}}), nil)
}

// readAll copies f to its end, but no longer than ctx lasts.
func (r *run) readAll(ctx context.Context, f *os.File, to io.Writer) (size int64, err error) {
	part := make([]byte, 64<<10)
	began, asked, reported := time.Now(), time.Now(), false
	for {
		if err := ctx.Err(); err != nil {
			return size, context.Cause(ctx)
		}
		if !readable(f, stdinPoll) {
			if !reported && time.Since(began) > stdinReport {
				reported = true
				r.say("waiting for the end of the standard input, which is sent before the program starts; it needs none: </dev/null")
			}
			if size == 0 && time.Since(asked) > stdinReport {
				if asked = time.Now(); !inPipeline(f) && !readable(f, 0) {
					return 0, errHeld
				}
			}
			continue
		}
		n, err := unix.Read(int(f.Fd()), part)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		case err != nil:
			return size, err
		case n == 0:
			return size, nil
		default:
			if _, err := to.Write(part[:n]); err != nil {
				return size, err
			}
			size += int64(n)
		}
		if size > maxStdin {
			return size, fmt.Errorf("it is longer than %d MiB: put it into a file of the workspace", maxStdin>>20)
		}
	}
}

// readable reports whether f can be read without blocking, within wait.
func readable(f *os.File, wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} // #nosec: a descriptor
	n, err := unix.Poll(fds, int(wait.Milliseconds()))
	return err == nil && n > 0
}

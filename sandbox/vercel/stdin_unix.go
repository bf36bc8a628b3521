//go:build unix

package vercel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a standard input that is sent.
const (
	maxStdin    = 64 << 20
	stdinPoll   = 100 * time.Millisecond // how often to check whether the run is over
	stdinReport = 3 * time.Second        // when to report what the run waits for
)

// stdin writes the standard input into a file in the sandbox and reports its
// name; "" when there is none to send: a terminal, or a pipe that is still open
// and empty when the sandbox is ready.
func (r *run) stdin(ctx context.Context) (string, error) {
	f := r.spec.Stdin
	if f == nil {
		return "", nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return "", nil
	}
	if !info.Mode().IsRegular() && !readable(f, 0) {
		r.say("the standard input is not sent: nothing has come on it yet, and it is still open")
		return "", nil
	}
	data, err := r.readAll(ctx, f)
	if err != nil || data.Len() == 0 {
		return "", err
	}
	name := r.temporary("stdin")
	return name, r.writeFile(ctx, name, data.String())
}

// readAll reads f to its end, but no longer than ctx lasts.
func (r *run) readAll(ctx context.Context, f *os.File) (*bytes.Buffer, error) {
	data := new(bytes.Buffer)
	part := make([]byte, 64<<10)
	began, reported := time.Now(), false
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if !readable(f, stdinPoll) {
			if !reported && time.Since(began) > stdinReport {
				reported = true
				r.say("waiting for the end of the standard input")
			}
			continue
		}
		n, err := unix.Read(int(f.Fd()), part)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		default:
			data.Write(part[:n])
		}
		if data.Len() > maxStdin {
			return nil, fmt.Errorf("it is longer than %d MiB: put it into a file of the workspace", maxStdin>>20)
		}
	}
}

// readable reports whether f can be read without blocking, within wait.
func readable(f *os.File, wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} // #nosec: a descriptor
	n, err := unix.Poll(fds, int(wait.Milliseconds()))
	return err == nil && n > 0
}

//go:build unix

package vercel

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxStdin bounds a standard input that travels.
const maxStdin = 64 << 20

// stdin writes the standard input into a file in the sandbox and reports its
// name; "" when there is none to send: a terminal, or a pipe on which nothing
// has come and that nobody has closed by the time that the sandbox is ready.
func (r *run) stdin(ctx context.Context) (string, error) {
	f := r.spec.Stdin
	if f == nil || !sendable(f) {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStdin+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxStdin {
		return "", fmt.Errorf("it is longer than %d MiB: put it into a file of the workspace", maxStdin>>20)
	}
	if len(data) == 0 {
		return "", nil
	}
	name := r.temporary("stdin")
	return name, r.writeFile(ctx, name, data)
}

// sendable reports whether reading f to its end comes to one.
func sendable(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return true
	case mode&os.ModeNamedPipe == 0 && mode&os.ModeSocket == 0:
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

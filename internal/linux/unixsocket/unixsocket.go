//go:build unix

// Package unixsocket opens listening sockets in the file system:
//
//	ln, err := unixsocket.Listen(ctx, "/run/egressd/admin.sock")
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// mode lets in the owner and the group.
const mode = 0o660

// Listen listens at path. Only its owner, this process's user, and its group may
// connect (mode 0660). A socket that a killed process left there is replaced; one
// that is in use, and any other file, is an error. Listen is for start-up: it
// changes the umask of the process for a moment. The caller closes the listener,
// which removes the file.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	old := syscall.Umask(0o777 &^ mode) // no one can connect before the mode is right
	defer syscall.Umask(old)
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: remove it, or name another path", path)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close() // only to see whether it is in use
		return fmt.Errorf("%s: another egressd answers there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

//go:build unix

package handover

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"egressd/internal/linux/unixsocket"
)

// Listen listens at path for launchers, as unixsocket.Listen does, in a directory
// that not everybody may write. The caller closes the listener.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := checkDirectory(path); err != nil {
		return nil, err
	}
	ln, err := unixsocket.Listen(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return ln, nil
}

// checkDirectory refuses a directory that everybody may write, sticky or not,
// and one below a directory in which everybody may rename what others made.
//
// Threat: somebody puts a socket of their own where launchers expect the daemon's,
// before it starts or after it has ended -> only the directory's owner and group
// can. Left over: those.
func checkDirectory(path string) error {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("control socket %s: %w", path, err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("control socket %s: %w", path, err)
		}
		if info.Mode().Perm()&0o002 != 0 && (at == dir || info.Mode()&os.ModeSticky == 0) {
			return fmt.Errorf("control socket %s: everybody may write in %s and could put a socket of their own there: use a directory of egressd's, such as /run/egressd", path, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// checkPeer refuses a listener that is neither root, nor this user, nor the
// owner of the socket.
func checkPeer(path string, c *net.UnixConn) error {
	p, err := peerOf(c)
	if err != nil {
		return fmt.Errorf("egressd at %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("egressd at %s: %w", path, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if p.uid == 0 || int(p.uid) == os.Geteuid() || ok && p.uid == st.Uid {
		return nil
	}
	return fmt.Errorf("egressd at %s: user %d listens there, who is neither root nor you nor the owner of the socket", path, p.uid)
}

//go:build unix

package forward

import (
	"net"
	"syscall"
)

// silence reports how to see whether nothing has arrived on c, not even its end,
// without a wait; nil: it cannot be seen.
func silence(c net.Conn) func() bool {
	raw := rawConn(c)
	if raw == nil {
		return nil
	}
	var one [1]byte
	silent := false
	look := func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = err == syscall.EAGAIN //nolint:errorlint // an errno comes bare
		return true
	}
	return func() bool { return raw.Read(look) == nil && silent }
}

package handover

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end, as the kernel reports it.
type peer struct {
	uid, gid uint32
	pid      int32
}

func (p peer) String() string { return fmt.Sprintf("uid=%d gid=%d pid=%d", p.uid, p.gid, p.pid) }

// peerOf reports SO_PEERCRED: of a launcher the process that connected, of a
// daemon the one that listens.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peer{}, err
	}
	if sockErr != nil {
		return peer{}, fmt.Errorf("peer credentials: %w", sockErr)
	}
	return peer{cred.Uid, cred.Gid, cred.Pid}, nil
}

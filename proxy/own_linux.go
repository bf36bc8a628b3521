package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// reachable reports whether connections of this process can arrive at ln at
// all. A listener made in another network namespace cannot be reached from
// here, and 127.0.0.1 over there is not 127.0.0.1 here. In doubt it can.
func reachable(ln net.Listener) bool {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	theirs, theirErr := uint64(0), error(nil)
	if err := raw.Control(func(fd uintptr) { theirs, theirErr = netnsCookie(int(fd)) }); err != nil || theirErr != nil {
		return true
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	ours, err := netnsCookie(fd)
	return err != nil || ours == theirs
}

// netnsCookie identifies the network namespace of a socket (Linux 5.14).
func netnsCookie(fd int) (uint64, error) {
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

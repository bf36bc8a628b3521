package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Listeners reports the sockets that env (os.Environ) says were passed to this
// process, in order; none without socket activation. Call it once: afterwards
// the descriptors belong to what it returned. An error closes all of them.
func Listeners(env []string) ([]Named, error) { return listeners(env, os.Getpid(), firstFD) }

func listeners(env []string, pid, first int) ([]Named, error) {
	all, err := names(env, pid)
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, len(all))
	for i := range all {
		unix.CloseOnExec(first + i) // before anything can fail: no child may inherit one
	}
	for i, name := range all {
		files[i] = os.NewFile(uintptr(first+i), name)
	}
	var out []Named
	var errs []error
	for i, f := range files {
		n, err := adopt(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("socket activation: descriptor %d (%s): %w", first+i, all[i], err))
		} else {
			n.Name = all[i]
			out = append(out, n)
		}
		_ = f.Close() // adopt made a copy
	}
	if len(errs) > 0 {
		for _, n := range out {
			n.close()
		}
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// adopt makes a listener of a copy of f.
func adopt(f *os.File) (n Named, err error) {
	fd := int(f.Fd())
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return n, fmt.Errorf("not a socket: %w", err)
	}
	switch kind {
	case unix.SOCK_DGRAM:
		n.Packet, err = net.FilePacketConn(f)
		return n, err
	case unix.SOCK_STREAM:
	default:
		return n, fmt.Errorf("a socket of type %d: stream (ListenStream=) and datagram (ListenDatagram=) are possible", kind)
	}
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return n, err
	}
	if listening == 0 {
		return n, errors.New("a connection, not a listener: the socket unit needs Accept=no")
	}
	n.Listener, err = net.FileListener(f)
	return n, err
}

func (n Named) close() {
	if n.Listener != nil {
		_ = n.Listener.Close()
	}
	if n.Packet != nil {
		_ = n.Packet.Close()
	}
}

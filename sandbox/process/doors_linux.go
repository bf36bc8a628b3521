package process

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"egressd/netns"
)

var errMissing = errors.New("the init passed too few descriptors")

// listener turns a passed descriptor into a listener; f stays the caller's.
func listener(f *os.File) (net.Listener, error) {
	if f == nil {
		return nil, errMissing
	}
	return net.FileListener(f)
}

func packetConn(f *os.File) (net.PacketConn, error) {
	if f == nil {
		return nil, errMissing
	}
	return netns.PacketConn(f)
}

// dupFile copies f, which stays the caller's, as a non-blocking file.
func dupFile(f *os.File) (*os.File, error) {
	if f == nil {
		return nil, errMissing
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // Fd made it blocking
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

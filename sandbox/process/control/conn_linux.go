package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds of the control socket.
const (
	MaxBytes = 16 << 20 // of one message: argv and environment (at most 2 MiB each), a CA bundle
	maxFDs   = 253      // the kernel's SCM_MAX_FD
)

// Conn frames messages over a stream socket: four bytes of length, then the
// message. Descriptors travel with the first byte. Calls block without Go's
// poller, which would cost the init's start a millisecond; Shutdown wakes them.
// Send is safe for concurrent use. Whoever made the socket closes it.
type Conn struct {
	FD int
	mu sync.Mutex // serialises frames
}

// Close closes the socket, which nobody may be using any more.
func (c *Conn) Close() { unix.Close(c.FD) }

// Shutdown ends the talk: Receive returns io.EOF on both sides.
func (c *Conn) Shutdown() { unix.Shutdown(c.FD, unix.SHUT_RDWR) } //nolint:errcheck // the other side is gone then

// Send writes m, passing fds along; they stay open here.
func (c *Conn) Send(m Message, fds ...int) error {
	frame, err := m.encode(make([]byte, 4, 1024))
	if err != nil {
		return err
	}
	if len(frame) > MaxBytes || len(fds) > maxFDs {
		return errors.New("control message: too large")
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(frame) > 0 {
		n, err := unix.SendmsgN(c.FD, frame, oob, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		frame, oob = frame[n:], nil
	}
	return nil
}

// Receive reads one message and the descriptors that came with it, which the
// caller closes. io.EOF means that the other side is gone.
func (c *Conn) Receive() (m Message, fds []*os.File, err error) {
	var head [4]byte
	if fds, err = c.read(head[:], make([]byte, unix.CmsgSpace(4*maxFDs))); err != nil {
		CloseAll(fds)
		return m, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > MaxBytes {
		CloseAll(fds)
		return m, nil, errors.New("control message: too large")
	}
	body := make([]byte, size)
	_, err = c.read(body, nil) // descriptors travel with the first byte
	if err == nil {
		m, err = decode(body)
	}
	if err != nil {
		CloseAll(fds)
		return Message{}, nil, err
	}
	return m, fds, nil
}

// read fills b, and takes the descriptors that come with it if oob has room.
func (c *Conn) read(b, oob []byte) (fds []*os.File, err error) {
	for len(b) > 0 {
		n, oobn, flags, _, err := unix.Recvmsg(c.FD, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fds, fmt.Errorf("control socket: %w", err)
		}
		if n == 0 {
			return fds, io.EOF
		}
		if oobn > 0 {
			files, err := parseRights(oob[:oobn])
			fds = append(fds, files...)
			if err != nil {
				return fds, err
			}
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return fds, errors.New("control socket: descriptors were cut off")
		}
		b = b[n:]
	}
	return fds, nil
}

func parseRights(oob []byte) ([]*os.File, error) {
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range msgs {
		fds, err := syscall.ParseUnixRights(&msgs[i])
		if err != nil {
			CloseAll(files)
			return nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

// CloseAll closes files, of which some may be nil.
func CloseAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

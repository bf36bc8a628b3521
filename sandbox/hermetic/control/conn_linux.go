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

// Descriptors of the worker. 0 and 1 are the person's; 2 is where the Go runtime
// writes when it crashes, which is not the person's terminal.
const (
	FD       = 3 // the control socket
	StderrFD = 4 // the person's standard error
)

// Most bytes of one message.
const (
	toWorker   = 64 << 20 // a script, an environment, certificates
	fromWorker = 4 << 20  // a list of changes
)

// MaxChanges and maxChangeBytes bound the changes of a report.
const (
	MaxChanges     = 10_000
	MaxChangeBytes = 1 << 20
)

// Conn frames messages over a stream socket: four bytes of length, then the
// message. A descriptor travels with the first byte, to the worker only. Calls
// block without Go's poller; Shutdown wakes them. Send is safe for concurrent
// use. Whoever made the socket closes it.
type Conn struct {
	FD     int
	Worker bool // this is the worker's end
	mu     sync.Mutex
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
	if bound := c.bound(!c.Worker); len(frame) > bound {
		return fmt.Errorf("more than %d MiB to tell", bound>>20)
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

func (c *Conn) bound(worker bool) int {
	if worker {
		return toWorker
	}
	return fromWorker
}

// Receive reads one message and the descriptor that came with it (nil: none),
// which the caller closes. io.EOF means that the other side is gone. The
// launcher takes no descriptor: a worker that somebody has taken over could
// fill it with them.
func (c *Conn) Receive() (m Message, fd *os.File, err error) {
	var head [4]byte
	var oob []byte
	if c.Worker {
		oob = make([]byte, unix.CmsgSpace(4))
	}
	if fd, err = c.read(head[:], oob); err == nil {
		m, err = c.body(int(binary.BigEndian.Uint32(head[:])))
	}
	if err != nil && fd != nil {
		fd.Close()
		fd = nil
	}
	return m, fd, err
}

func (c *Conn) body(size int) (Message, error) {
	if size > c.bound(c.Worker) {
		return Message{}, errors.New("control message: too large")
	}
	body := make([]byte, size)
	if _, err := c.read(body, nil); err != nil { // descriptors travel with the first byte
		return Message{}, err
	}
	return decode(body)
}

// read fills b, and takes the descriptor that comes with it if oob has room.
func (c *Conn) read(b, oob []byte) (fd *os.File, err error) {
	for len(b) > 0 {
		n, oobn, _, _, err := unix.Recvmsg(c.FD, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fd, fmt.Errorf("control socket: %w", err)
		}
		if n == 0 {
			return fd, io.EOF
		}
		if oobn > 0 && fd == nil {
			if fd, err = parseRights(oob[:oobn]); err != nil {
				return fd, err
			}
		}
		b = b[n:]
	}
	return fd, nil
}

// parseRights reports the one descriptor there is room for.
func parseRights(oob []byte) (*os.File, error) {
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) == 0 {
		return nil, err
	}
	fds, err := syscall.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "gate"), nil
}

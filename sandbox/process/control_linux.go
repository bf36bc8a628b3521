package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/netns"
)

// Bounds of the control socket.
const (
	maxMessageBytes = 16 << 20 // argv and environment (at most 2 MiB each), a CA bundle
	maxMessageFDs   = 64
)

// message is one step of the talk between the supervisor and the init. Exactly
// one field is set.
type message struct {
	// From the supervisor.
	Config *config      `json:",omitempty"` // first: what to set up
	Go     *goAhead     `json:",omitempty"` // the doors are served: start the harness
	Signal *signalOrder `json:",omitempty"`
	Resume *resumeOrder `json:",omitempty"` // after a stop: go on
	Dial   *dialOrder   `json:",omitempty"` // connect to a server inside

	// From the init.
	Doors   *doorsReady  `json:",omitempty"` // with the listeners' descriptors
	Stopped *stopReport  `json:",omitempty"` // the harness was stopped (Ctrl-Z)
	Exited  *exitReport  `json:",omitempty"` // the harness ended
	Failed  *failReport  `json:",omitempty"` // no harness was started
	Dialled *dialOutcome `json:",omitempty"` // with the connection's descriptor
}

type goAhead struct{ Env []string } // the harness's whole environment

type signalOrder struct {
	Sig syscall.Signal
	All bool // every process inside, not just the harness
}

type resumeOrder struct{ Foreground bool }

type dialOrder struct {
	ID   uint64
	Port uint16
}

type dialOutcome struct {
	ID  uint64
	Err string `json:",omitempty"`
}

// doorsReady describes the descriptors that come with it, in this order:
// proxy, DNS over TCP, DNS over UDP, the refusal log (when there is one), the
// transparent listeners, and the localhost listeners (two for each port that
// was asked for at most).
type doorsReady struct {
	Mode        netns.Mode
	ProxyPort   uint16
	Transparent int
	Refusals    bool
	Localhost   []uint16 // the port of each localhost listener
	Notes       []string
}

type stopReport struct{ Sig syscall.Signal }

type exitReport struct {
	Code   int            // exit code as in a shell
	Signal syscall.Signal // what killed it; 0: it exited
	NotRun bool           // the program could not be executed (126, 127)
}

// failReport says which wall could not be built.
type failReport struct {
	Step  string
	Err   string
	Errno syscall.Errno // 0 when it was no system call
}

// conn frames messages over a stream socket: four bytes of length, then what
// encode makes. Descriptors travel with the first byte. Calls block without
// Go's poller, which would cost the init's start a millisecond; shutdown wakes
// them. Send is safe for concurrent use.
type conn struct {
	fd int
	mu sync.Mutex // serialises frames
}

// close closes the socket, which nobody may be using any more.
func (c *conn) close() { unix.Close(c.fd) }

// shutdown ends the talk: receive returns io.EOF on both sides.
func (c *conn) shutdown() { unix.Shutdown(c.fd, unix.SHUT_RDWR) } //nolint:errcheck // the other side is gone then

// send writes m, passing fds along; they stay open here.
func (c *conn) send(m message, fds ...int) error {
	body, err := encode(&m)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	if len(body) > maxMessageBytes || len(fds) > maxMessageFDs {
		return errors.New("control message: too large")
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	frame = append(frame, body...)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(frame) > 0 {
		n, err := unix.SendmsgN(c.fd, frame, oob, nil, unix.MSG_NOSIGNAL)
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

// receive reads one message and the descriptors that came with it, which the
// caller closes. io.EOF means that the other side is gone.
func (c *conn) receive() (m message, fds []*os.File, err error) {
	var head [4]byte
	if fds, err = c.read(head[:]); err != nil {
		closeAll(fds)
		return m, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessageBytes {
		closeAll(fds)
		return m, nil, errors.New("control message: too large")
	}
	body := make([]byte, size)
	more, err := c.read(body)
	closeAll(more) // there are none: descriptors travel with the first byte
	if err == nil {
		err = decode(body, &m)
	}
	if err != nil {
		closeAll(fds)
		return m, nil, err
	}
	return m, fds, nil
}

// read fills b.
func (c *conn) read(b []byte) (fds []*os.File, err error) {
	oob := make([]byte, unix.CmsgSpace(4*maxMessageFDs))
	for len(b) > 0 {
		n, oobn, flags, _, err := unix.Recvmsg(c.fd, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fds, fmt.Errorf("control socket: %w", err)
		}
		if n == 0 {
			return fds, io.EOF
		}
		files, err := parseRights(oob[:oobn])
		fds = append(fds, files...)
		if err == nil && flags&unix.MSG_CTRUNC != 0 {
			err = errors.New("control socket: descriptors were cut off")
		}
		if err != nil {
			return fds, err
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
			closeAll(files)
			return nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

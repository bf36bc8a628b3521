package ipc

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

// MaxFiles is how many descriptors the kernel passes at a time (SCM_MAX_FD).
const MaxFiles = 253

const headBytes = 4

// Conn frames messages over a Unix stream socket: four bytes of length, then
// the message. Descriptors travel with the first byte. Calls block without Go's
// poller, which would cost a millisecond of a process's start; Shutdown wakes
// them. Send is safe for concurrent use, Receive is for one goroutine. Whoever
// made the socket closes it.
type Conn struct {
	FD int

	// SendBytes and ReceiveBytes bound a message each way. Zero: none may go.
	SendBytes, ReceiveBytes int

	// ReceiveFiles is how many descriptors one message may bring, MaxFiles at
	// most.
	//
	// Threat: a process that somebody has taken over fills its supervisor with
	// descriptors -> with zero the kernel drops them all; with more, a message
	// that brings too many is an error.
	ReceiveFiles int

	mu sync.Mutex // serialises frames
}

// Close closes the socket, which must not be in use any more.
func (c *Conn) Close() { unix.Close(c.FD) }

// Shutdown ends the exchange: Receive returns io.EOF on both sides.
func (c *Conn) Shutdown() { unix.Shutdown(c.FD, unix.SHUT_RDWR) } //nolint:errcheck // the other side is gone then

// Send writes the value whose fields code names, and passes fds along; they stay open here.
func (c *Conn) Send(code func(*Coder), fds ...int) error {
	frame, err := Encode(make([]byte, headBytes, 1024), code)
	if err != nil {
		return err
	}
	if len(frame)-headBytes > c.SendBytes {
		return fmt.Errorf("control message: more than %d MiB", c.SendBytes>>20)
	}
	if len(fds) > MaxFiles {
		return fmt.Errorf("control message: more than %d descriptors", MaxFiles)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-headBytes)) // #nosec: bounded above
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

// Receive reads one message into the zero value whose fields code names, and
// returns the descriptors that came with it, which the caller closes. io.EOF
// means that the other side is gone. After an error there are no descriptors,
// and the value is not to be used.
func (c *Conn) Receive(code func(*Coder)) ([]*os.File, error) {
	var head [headBytes]byte
	var oob []byte
	if c.ReceiveFiles > 0 {
		oob = make([]byte, unix.CmsgSpace(4*c.ReceiveFiles))
	}
	fds, err := c.read(head[:], oob)
	if err == nil {
		err = c.body(binary.BigEndian.Uint32(head[:]), code)
	}
	if err != nil {
		CloseAll(fds)
		return nil, err
	}
	return fds, nil
}

func (c *Conn) body(size uint32, code func(*Coder)) error {
	if uint64(size) > uint64(c.ReceiveBytes) {
		return errors.New("control message: too large")
	}
	body := make([]byte, size)
	if _, err := c.read(body, nil); err != nil { // descriptors travel with the first byte
		return err
	}
	return Decode(body, code)
}

// read fills b, and takes the descriptors that come with it if oob has room.
// The descriptors are the caller's also after an error.
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
		files, err := parseRights(oob[:oobn])
		fds = append(fds, files...)
		if err != nil {
			return fds, err
		}
		// Two fit where there is room for one: control messages are padded.
		if len(oob) > 0 && (flags&unix.MSG_CTRUNC != 0 || len(fds) > c.ReceiveFiles) {
			return fds, errors.New("control socket: too many descriptors")
		}
		b = b[n:]
	}
	return fds, nil
}

func parseRights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range msgs {
		fds, err := syscall.ParseUnixRights(&msgs[i])
		if err != nil {
			return files, err
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

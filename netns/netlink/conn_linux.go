package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoAnswer is reported for a message that asked for an acknowledgement and
// got none.
var ErrNoAnswer = errors.New("no answer from the kernel")

// Message is a netlink message without its frame.
type Message struct {
	Kind  uint16
	Flags uint16 // NLM_F_REQUEST is added
	Body  []byte // the header of that kind and its attributes
	About string // what the message asks for, for errors; may be empty
}

// RefusedError is the kernel's refusal of one message.
type RefusedError struct {
	About string
	Errno unix.Errno
}

func (e *RefusedError) Error() string {
	if e.About == "" {
		return e.Errno.Error()
	}
	return fmt.Sprintf("%s: %v", e.About, e.Errno)
}

func (e *RefusedError) Unwrap() error { return e.Errno }

// Conn is a netlink socket of the network namespace of the thread that dialled
// it. It is not safe for concurrent use.
type Conn struct{ fd int }

// Dial opens a socket of the protocol proto, such as NETLINK_ROUTE. The caller
// closes it.
func Dial(proto int) (Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return Conn{-1}, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return Conn{-1}, os.NewSyscallError("bind", err)
	}
	return Conn{fd}, nil
}

// Close closes the socket.
func (c Conn) Close() { unix.Close(c.fd) }

// Buffer sets how many bytes the kernel holds for a slow reader.
func (c Conn) Buffer(bytes int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes))
}

// File turns c into a file. c must not be used afterwards.
func (c Conn) File(name string) *os.File { return os.NewFile(uintptr(c.fd), name) }

// Implementation constants of the buffers: an answer repeats the message that
// it answers.
const (
	answerSize = 8 << 10
	dumpSize   = 64 << 10
)

// Send sends the messages in one system call and reports the kernel's answer
// to each: nil for success and for a message that asked for no acknowledgement
// and was not refused, else a *[RefusedError] or [ErrNoAnswer]. err is about the
// exchange as a whole. Rtnetlink and nfnetlink work inside the call, so every
// answer is queued when it returns.
func (c Conn) Send(messages []Message) (answers []error, err error) {
	answers = make([]error, len(messages))
	size := answerSize
	for i, m := range messages {
		if m.Flags&unix.NLM_F_ACK != 0 {
			answers[i] = ErrNoAnswer
		}
		size = max(size, len(m.Body)+answerSize)
	}
	if err := c.write(messages); err != nil {
		return nil, err
	}
	buf := make([]byte, size)
	for {
		received, err := c.read(buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		for _, r := range received {
			errno, ok := answer(r)
			if !ok || int(r.Header.Seq) >= len(answers) {
				continue
			}
			answers[r.Header.Seq] = nil
			if errno != 0 {
				answers[r.Header.Seq] = &RefusedError{messages[r.Header.Seq].About, errno}
			}
		}
	}
}

// First reports the first error of a Send.
func First(answers []error, err error) error {
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a != nil {
			return a
		}
	}
	return nil
}

// maxDump bounds how many messages the kernel may answer one question with.
const maxDump = 1 << 16

// Dump asks one question and reports every answer. A list that changed while
// it was read is an error that wraps EINTR.
func (c Conn) Dump(m Message) ([]syscall.NetlinkMessage, error) {
	m.Flags |= unix.NLM_F_DUMP
	if err := c.write([]Message{m}); err != nil {
		return nil, err
	}
	var all []syscall.NetlinkMessage
	for len(all) < maxDump {
		received, err := c.read(make([]byte, dumpSize), 0)
		if err != nil {
			return nil, err
		}
		for _, r := range received {
			switch r.Header.Type {
			case unix.NLMSG_DONE:
				return all, nil
			case unix.NLMSG_ERROR:
				if errno, _ := answer(r); errno != 0 {
					return nil, &RefusedError{m.About, errno}
				}
				return all, nil
			}
			if r.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
				return nil, &RefusedError{m.About, unix.EINTR}
			}
			all = append(all, r)
		}
	}
	return nil, errors.New("the kernel's answer does not end")
}

// write sends the messages in one system call, numbered from 0: the number
// says which message is answered.
func (c Conn) write(messages []Message) error {
	size := 0
	for _, m := range messages {
		size += unix.SizeofNlMsghdr + len(m.Body)
	}
	b := make([]byte, 0, size)
	for i, m := range messages { // struct nlmsghdr; bodies are aligned already
		b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(m.Body)))
		b = binary.NativeEndian.AppendUint16(b, m.Kind)
		b = binary.NativeEndian.AppendUint16(b, m.Flags|unix.NLM_F_REQUEST)
		b = binary.NativeEndian.AppendUint32(b, uint32(i))
		b = binary.NativeEndian.AppendUint32(b, 0)
		b = append(b, m.Body...)
	}
	return os.NewSyscallError("sendto", unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// read reads one datagram into buf; flags are those of recv(2). With
// MSG_DONTWAIT the error of an empty queue is EAGAIN.
func (c Conn) read(buf []byte, flags int) ([]syscall.NetlinkMessage, error) {
	for {
		n, _, err := unix.Recvfrom(c.fd, buf, flags)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return nil, fmt.Errorf("netlink: %w", err)
		}
		return messages, nil
	}
}

// answer reads struct nlmsgerr; errno is zero for an acknowledgement, and ok is
// false for a message of another kind.
func answer(m syscall.NetlinkMessage) (errno unix.Errno, ok bool) {
	if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 {
		return 0, false
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data))), true
}

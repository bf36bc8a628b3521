package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// message is a netlink message without its frame: what kind it is, and the
// header of that kind with the attributes behind it.
type message struct {
	kind, flags uint16
	body        string
}

// attr is a netlink attribute with its padding, see netlink(7).
func attr(kind uint16, data []byte) []byte {
	n := unix.SizeofNlAttr + len(data)
	b := make([]byte, (n+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1))
	binary.NativeEndian.PutUint16(b, uint16(n)) // #nosec: attributes here have a few bytes
	binary.NativeEndian.PutUint16(b[2:], kind)
	copy(b[unix.SizeofNlAttr:], data)
	return b
}

func nested(kind uint16, inner []byte) []byte { return attr(unix.NLA_F_NESTED|kind, inner) }

func text(s string) []byte { return append([]byte(s), 0) }

func number(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// conn is a netlink socket of the calling thread's namespace. It sends many
// messages with one system call: set-up is on the way of every start.
type conn struct {
	fd  int
	buf []byte
}

func dial(proto int) (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return &conn{fd, make([]byte, bufferSize)}, nil
}

// bufferSize holds every transaction here, and what the kernel says to it.
const bufferSize = 8 << 10

func (c *conn) close() { unix.Close(c.fd) }

// file gives the socket away.
func (c *conn) file(name string) *os.File { return os.NewFile(uintptr(c.fd), name) }

var errNoAnswer = errors.New("no answer from the kernel")

// send sends the messages in one system call and reports the kernel's answer
// to each: nil is success, or no complaint about one that asked for no
// acknowledgement. err is about the exchange as a whole. Rtnetlink and
// nfnetlink work inside the call, so every answer is queued when it returns.
func (c *conn) send(messages []message) (answers []error, err error) {
	b := c.buf[:0]
	answers = make([]error, len(messages))
	for i, m := range messages {
		if m.flags&unix.NLM_F_ACK != 0 {
			answers[i] = errNoAnswer
		}
		// struct nlmsghdr; the sequence number says which message is answered.
		b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(m.body)))
		b = binary.NativeEndian.AppendUint16(b, m.kind)
		b = binary.NativeEndian.AppendUint16(b, m.flags|unix.NLM_F_REQUEST)
		b = binary.NativeEndian.AppendUint32(b, uint32(i))
		b = binary.NativeEndian.AppendUint32(b, 0)
		b = append(b, m.body...) // its length is a multiple of four
	}
	if err := unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	return answers, c.receive(answers)
}

// receive empties the queue into answers.
func (c *conn) receive(answers []error) error {
	for {
		n, _, err := unix.Recvfrom(c.fd, c.buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(c.buf[:n])
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		for _, m := range messages {
			if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 && int(m.Header.Seq) < len(answers) {
				answers[m.Header.Seq] = answerOf(m.Data)
			}
		}
	}
}

// answerOf reads struct nlmsgerr: zero is an acknowledgement.
func answerOf(b []byte) error {
	if code := int32(binary.NativeEndian.Uint32(b)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// first reports the first answer that is an error.
func first(answers []error, err error) error {
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

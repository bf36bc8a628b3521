package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// conn is a netlink socket of the calling thread's namespace. It sends many
// messages with one system call: set-up is on the way of every start.
type conn struct {
	fd int
}

func dial(proto int) (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return &conn{fd: fd}, nil
}

func (c *conn) close() { unix.Close(c.fd) }

// file gives the socket away.
func (c *conn) file(name string) *os.File { return os.NewFile(uintptr(c.fd), name) }

var errNoAnswer = errors.New("no answer from the kernel")

// send sends the messages in one system call and reports the kernel's answer
// to each: nil is success, or no complaint about one that asked for no
// acknowledgement. err is about the exchange as a whole. Rtnetlink and
// nfnetlink work inside the call, so every answer is queued when it returns.
func (c *conn) send(messages []netlink.Message) (answers []error, err error) {
	var b []byte
	answers = make([]error, len(messages))
	for i, m := range messages {
		if m.Header.Flags&netlink.Acknowledge != 0 {
			answers[i] = errNoAnswer
		}
		m.Header.Flags |= netlink.Request
		m.Header.Sequence = uint32(i)
		m.Header.Length = uint32(unix.SizeofNlMsghdr + len(m.Data))
		one, err := m.MarshalBinary()
		if err != nil {
			return nil, err
		}
		b = append(b, one...)
	}
	if err := unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	return answers, c.receive(answers)
}

// receive empties the queue into answers.
func (c *conn) receive(answers []error) error {
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.Read(c.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
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

package capture

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
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
	netlink.Conn
	buf []byte
}

// bufferSize holds every transaction here, and what the kernel says to it.
const bufferSize = 8 << 10

func dial(proto int) (*conn, error) {
	c, err := netlink.Dial(proto)
	if err != nil {
		return nil, err
	}
	return &conn{c, make([]byte, bufferSize)}, nil
}

// send sends the messages in one system call and reports the kernel's answer
// to each: nil is success, or no complaint about one that asked for no
// acknowledgement. err is about the exchange as a whole. Rtnetlink and
// nfnetlink work inside the call, so every answer is queued when it returns.
func (c *conn) send(messages []message) (answers []error, err error) {
	b := c.buf[:0]
	answers = make([]error, len(messages))
	for i, m := range messages {
		if m.flags&unix.NLM_F_ACK != 0 {
			answers[i] = netlink.ErrNoAnswer
		}
		b = netlink.Frame(b, uint32(i), m.kind, m.flags, m.body) // the sequence number says which message is answered
	}
	if err := c.Write(b); err != nil {
		return nil, err
	}
	return answers, c.receive(answers)
}

// receive empties the queue into answers.
func (c *conn) receive(answers []error) error {
	for {
		messages, err := c.Read(c.buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			errno, ok := netlink.Answer(m)
			if !ok || int(m.Header.Seq) >= len(answers) {
				continue
			}
			answers[m.Header.Seq] = nil
			if errno != 0 {
				answers[m.Header.Seq] = errno
			}
		}
	}
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

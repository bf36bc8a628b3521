package pod

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// message is a netlink message without its frame.
type message struct {
	kind, flags uint16
	body        []byte
	about       string // what it would do, for errors
}

// encode is the attribute with its padding, see netlink(7).
func (a attr) encode(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	kind := a.kind
	if a.inner != nil {
		kind |= unix.NLA_F_NESTED
		b = encodeAll(b, a.inner)
	} else {
		b = append(b, a.data...)
	}
	binary.NativeEndian.PutUint16(b[at:], uint16(len(b)-at)) // #nosec: attributes here are small
	binary.NativeEndian.PutUint16(b[at+2:], kind)
	for len(b)%unix.NLA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

func encodeAll(b []byte, attrs []attr) []byte {
	for _, a := range attrs {
		b = a.encode(b)
	}
	return b
}

// conn is a netlink socket of the calling thread's namespace.
type conn struct{ netlink.Conn }

func dial(proto int) (*conn, error) {
	c, err := netlink.Dial(proto)
	if err != nil {
		return nil, err
	}
	return &conn{c}, nil
}

// write sends the messages in one system call, numbered from 0.
func (c *conn) write(messages []message) error {
	var b []byte
	for i, m := range messages {
		b = netlink.Frame(b, uint32(i), m.kind, m.flags, m.body)
	}
	return c.Write(b)
}

// refusedError is the kernel's answer to one message.
type refusedError struct {
	about string
	errno unix.Errno
}

func (e *refusedError) Error() string {
	if e.about == "" {
		return e.errno.Error()
	}
	return fmt.Sprintf("%s: %v", e.about, e.errno)
}

func (e *refusedError) Unwrap() error { return e.errno }

// send sends the messages and reports the first that the kernel refused. It
// needs an acknowledgement of the last that asks for one. The kernel works
// inside the call, so every answer is queued when it returns.
func (c *conn) send(messages []message) error {
	last := -1
	for i, m := range messages {
		if m.flags&unix.NLM_F_ACK != 0 {
			last = i
		}
	}
	if err := c.write(messages); err != nil {
		return err
	}
	done := last < 0
	buf := make([]byte, 64<<10)
	for {
		answers, err := c.Read(buf, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN) && done:
			return nil
		case errors.Is(err, unix.EAGAIN):
			return netlink.ErrNoAnswer
		case err != nil:
			return err
		}
		for _, m := range answers {
			errno, ok := netlink.Answer(m)
			if !ok || int(m.Header.Seq) >= len(messages) {
				continue
			}
			if errno != 0 {
				return &refusedError{messages[m.Header.Seq].about, errno}
			}
			done = done || int(m.Header.Seq) == last
		}
	}
}

// maxDump bounds what the kernel may answer to one question.
const maxDump = 1 << 16

// dump asks and reports every answer.
func (c *conn) dump(m message) ([]syscall.NetlinkMessage, error) {
	m.flags |= unix.NLM_F_DUMP
	if err := c.write([]message{m}); err != nil {
		return nil, err
	}
	var all []syscall.NetlinkMessage
	for len(all) < maxDump {
		answers, err := c.Read(make([]byte, 64<<10), 0)
		if err != nil {
			return nil, err
		}
		for _, a := range answers {
			switch a.Header.Type {
			case unix.NLMSG_DONE:
				return all, nil
			case unix.NLMSG_ERROR:
				if errno, _ := netlink.Answer(a); errno != 0 {
					return nil, &refusedError{m.about, errno}
				}
				return all, nil
			}
			if a.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
				return nil, &refusedError{m.about, unix.EINTR}
			}
			all = append(all, a)
		}
	}
	return nil, errors.New("the kernel's answer does not end")
}

// rawAttr is an attribute as the kernel writes it; only who asks knows
// whether others are inside.
type rawAttr struct {
	kind uint16
	data []byte
}

func parseAttrs(b []byte) ([]rawAttr, error) {
	var attrs []rawAttr
	for len(b) >= unix.SizeofNlAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return nil, errors.New("netlink: an attribute of wrong length")
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		attrs = append(attrs, rawAttr{kind, b[unix.SizeofNlAttr:n]})
		b = b[min((n+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b)):]
	}
	return attrs, nil
}

// find reports the first attribute of that kind; nil: there is none.
func find(attrs []rawAttr, kind uint16) []byte {
	for _, a := range attrs {
		if a.kind == kind {
			return a.data
		}
	}
	return nil
}

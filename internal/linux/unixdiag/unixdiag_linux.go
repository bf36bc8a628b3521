// Package unixdiag asks the kernel for the unix sockets of one network namespace
// that are bound to files:
//
//	c, err := unixdiag.Open() // this namespace's, for good
//	err = c.Each(unixdiag.Any, func(s unixdiag.Socket) bool { ...; return true })
//
// What it reports of a file is what the kernel calls it. stat(2) may report
// another device (btrfs, overlay file systems).
package unixdiag

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Socket is one unix socket that is bound to a file.
type Socket struct {
	Path         string // as it was given to bind: it may be relative, or renamed since
	Major, Minor uint32 // of the device of its file system
	Inode        uint32 // the low half of its number
}

// States of sockets, a bit each (net/tcp_states.h).
const (
	Any       = ^uint32(0)
	Listening = uint32(1 << 10)
)

// Conn is a connection to the kernel. It is for one goroutine at a time.
type Conn struct {
	fd  int
	buf []byte
}

// Open connects to the calling thread's network namespace.
func Open() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("sock_diag", err)
	}
	return &Conn{fd: fd}, nil
}

// Close closes the connection.
func (c *Conn) Close() { unix.Close(c.fd) }

// Constants of linux/sock_diag.h and linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	showName         = 1
	showVFS          = 2
	attrName         = 0
	attrVFS          = 1
	messageSize      = 16 // struct unix_diag_msg
	requestSize      = 24 // struct unix_diag_req
)

const answerBytes = 64 << 10 // what the kernel writes at a time is less

// Each calls f for the sockets in one of states until f reports false. An error
// means that the kernel has no unix_diag, or that not all of them were seen.
func (c *Conn) Each(states uint32, f func(Socket) bool) error {
	req := make([]byte, unix.NLMSG_HDRLEN+requestSize)
	binary.NativeEndian.PutUint32(req, uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := req[unix.NLMSG_HDRLEN:]
	body[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(body[4:], states)
	binary.NativeEndian.PutUint32(body[12:], showName|showVFS)
	if err := unix.Sendto(c.fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("unix_diag", err)
	}
	if c.buf == nil {
		c.buf = make([]byte, answerBytes)
	}
	for more := true; ; { // to the end of the answer, also when f has enough
		n, _, err := unix.Recvfrom(c.fd, c.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return os.NewSyscallError("unix_diag", err)
		}
		messages, err := syscall.ParseNetlinkMessage(c.buf[:n])
		if err != nil || len(messages) == 0 {
			return errors.Join(err, errors.New("unix_diag: a short answer"))
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				return errors.New("unix_diag: refused")
			}
			if s, ok := parse(m.Data); ok && more {
				more = f(s)
			}
		}
	}
}

// parse reads one struct unix_diag_msg with its attributes. ok is false for a
// socket that no file leads to.
func parse(b []byte) (s Socket, ok bool) {
	if len(b) < messageSize {
		return s, false
	}
	for b = b[messageSize:]; len(b) >= unix.NLA_HDRLEN; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.NLA_HDRLEN || size > len(b) {
			return s, false
		}
		value := b[unix.NLA_HDRLEN:size]
		switch {
		case kind == attrName:
			s.Path = string(bytes.TrimRight(value, "\x00"))
		case kind == attrVFS && len(value) >= 8:
			s.Inode = binary.NativeEndian.Uint32(value)
			dev := binary.NativeEndian.Uint32(value[4:]) // the kernel's own dev_t
			s.Major, s.Minor, ok = dev>>20, dev&(1<<20-1), true
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	// Abstract names begin with a NUL.
	return s, ok && s.Path != "" && s.Path[0] != 0
}

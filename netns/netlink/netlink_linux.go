// Package netlink is the part of netlink(7) that both writers of kernel rules
// need: a socket, frames, answers. What is in a message is their business. Pid
// 1 of every run starts with it, so it imports next to nothing.
package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoAnswer is what is said of a message that the kernel should have
// acknowledged.
var ErrNoAnswer = errors.New("no answer from the kernel")

// Conn is a netlink socket of the namespace of the thread that dialled it. Not
// safe for concurrent use.
type Conn struct{ fd int }

// Dial makes a socket of the protocol proto. The caller closes it.
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

// Close gives the socket up.
func (c Conn) Close() { unix.Close(c.fd) }

// Buffer sets how many bytes the kernel keeps for a reader that is late.
func (c Conn) Buffer(bytes int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes))
}

// File gives the socket away.
func (c Conn) File(name string) *os.File { return os.NewFile(uintptr(c.fd), name) }

// Frame appends a request: its struct nlmsghdr and body, whose length is a
// multiple of four. The answer to it bears seq.
func Frame[T string | []byte](b []byte, seq uint32, kind, flags uint16, body T) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, body...)
}

// Write sends frames to the kernel in one system call.
func (c Conn) Write(frames []byte) error {
	return os.NewSyscallError("sendto", unix.Sendto(c.fd, frames, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// Read reads what one datagram holds into buf; flags are those of recv(2). With
// MSG_DONTWAIT the error of an empty queue is EAGAIN.
func (c Conn) Read(buf []byte, flags int) ([]syscall.NetlinkMessage, error) {
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

// Answer reads the kernel's answer to a request, struct nlmsgerr; errno is zero
// for an acknowledgement, and ok is false for a message that is no answer.
func Answer(m syscall.NetlinkMessage) (errno unix.Errno, ok bool) {
	if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 {
		return 0, false
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data))), true
}

package mmsg

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is a UDP socket that is connected to one peer.
type Conn struct{ raw syscall.RawConn }

// Connected reads and writes c, which stays the caller's.
func Connected(c syscall.Conn) (*Conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Conn{raw}, nil
}

// Box is room for packets that were read from a Conn. It is one goroutine's.
type Box struct {
	headers [Most]header
	vectors [Most]unix.Iovec
	packets [Most][PacketBytes]byte
	n       int
}

// Len is the number of packets.
func (b *Box) Len() int { return b.n }

// Packet is the ith packet, until the box is put back.
func (b *Box) Packet(i int) []byte {
	return b.packets[i][:b.headers[i].len]
}

// Boxes keeps boxes for the next to read. The zero Boxes is ready. Safe for concurrent use.
type Boxes struct{ pool sync.Pool }

func (p *Boxes) get() *Box {
	if b, ok := p.pool.Get().(*Box); ok {
		return b
	}
	b := new(Box)
	for i := range b.headers {
		b.vectors[i].Base = &b.packets[i][0]
		b.vectors[i].SetLen(PacketBytes)
		b.headers[i].hdr.Iov = &b.vectors[i]
		b.headers[i].hdr.SetIovlen(1)
	}
	return b
}

// Put takes a box back.
func (p *Boxes) Put(b *Box) { p.pool.Put(b) }

// Read waits for packets and reads those that are there, at most Most, into a box that
// it takes from p once there are some: many sockets may wait with few boxes. The caller
// puts the box back. Errors are those of package net.
func (c *Conn) Read(p *Boxes) (*Box, error) {
	var b *Box
	var errno syscall.Errno
	err := c.raw.Read(func(fd uintptr) bool {
		b = p.get()
		b.n, errno = call(unix.SYS_RECVMMSG, fd, b.headers[:])
		if errno == unix.EAGAIN {
			p.Put(b)
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case errno != 0:
		p.Put(b)
		return nil, &net.OpError{Op: "read", Net: "udp", Err: errno}
	}
	return b, nil
}

// Write sends packets, none of which is empty, without waiting: what the socket has no
// room for is lost, as on any network. An error means that the rest was not sent.
func (c *Conn) Write(packets [][]byte) error {
	var headers [Most]header
	var vectors [Most]unix.Iovec
	var errno syscall.Errno
	err := c.raw.Control(func(fd uintptr) {
		for len(packets) > 0 && errno == 0 {
			n := min(len(packets), Most)
			for i, p := range packets[:n] {
				vectors[i].Base = &p[0]
				vectors[i].SetLen(len(p))
				headers[i].hdr.Iov = &vectors[i]
				headers[i].hdr.SetIovlen(1)
			}
			n, errno = call(unix.SYS_SENDMMSG, fd, headers[:n])
			packets = packets[n:]
		}
	})
	if err == nil && errno != 0 && errno != unix.EAGAIN {
		err = &net.OpError{Op: "write", Net: "udp", Err: errno}
	}
	return err
}

// SetReturn has the ith reply go back, instead of to the sender of a packet.
func (b *Batch) SetReturn(i int, back *Return) { b.ways[i], b.sizes[i] = back.way, 1 }

// Empty forgets all packets and replies.
func (b *Batch) Empty() {
	for i := range b.replies {
		b.replies[i] = b.replies[i][:0]
	}
	clear(b.sizes[:])
}

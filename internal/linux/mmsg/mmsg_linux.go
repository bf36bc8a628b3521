package mmsg

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a UDP socket.
type Socket struct{ raw syscall.RawConn }

// Open prepares c: it asks the kernel for the address that each packet was sent to, and
// to send from addresses that are local by route alone (IP_FREEBIND), which IPv6 refuses
// otherwise. It does not take c over. An error means that c can do neither, or is no
// socket: read it one packet at a time.
func Open(c syscall.Conn) (*Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var err4, err6 error
	err = raw.Control(func(fd uintptr) {
		s := int(fd)
		err4 = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		err6 = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1) // without it, only addresses of an interface can answer
	})
	switch {
	case err != nil:
		return nil, err
	case err4 != nil && err6 != nil:
		return nil, errors.Join(err4, err6)
	}
	return &Socket{raw}, nil
}

// way leads back to the sender of a packet: its address and, as a control message, the
// address that it sent to.
type way struct {
	name    unix.RawSockaddrInet6 // any family's: the kernel's own bytes
	nameLen uint32
	info    [infoBytes]byte
	infoLen int // 0: the kernel chooses where from
}

// infoBytes is room for both families' packet information, as control messages.
const infoBytes = 80

// header is struct mmsghdr.
type header struct {
	hdr unix.Msghdr
	len uint32
}

// Batch is room for packets and their replies.
type Batch struct {
	headers [Most]header
	vectors [Most]unix.Iovec
	ways    [Most]way
	packets [Most][PacketBytes]byte
	replies [Most][]byte
	sizes   [Most]int
	out     [Most]header
	outVecs [Most]unix.Iovec
}

// NewBatch makes room for Most packets.
func NewBatch() *Batch { return new(Batch) }

// Packet is the ith packet that was read, until the next Read.
func (b *Batch) Packet(i int) []byte { return b.packets[i][:b.sizes[i]] }

// Buffer is room for the ith reply, empty.
func (b *Batch) Buffer(i int) []byte { return b.replies[i][:0] }

// SetReply sets the reply to the ith packet; it is kept until the next Read. Empty: there is none.
func (b *Batch) SetReply(i int, reply []byte) { b.replies[i] = reply }

// Client is who sent the ith packet; IPv4 in IPv6 is IPv4. A link-local address has the
// number of its interface for a zone.
func (b *Batch) Client(i int) netip.AddrPort { return b.ways[i].client() }

func (w *way) client() netip.AddrPort {
	switch w.name.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&w.name)) // #nosec G103 -- smaller, and of this family
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), ntohs(in.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(w.name.Addr).Unmap()
		if w.name.Scope_id != 0 {
			a = a.WithZone(strconv.Itoa(int(w.name.Scope_id)))
		}
		return netip.AddrPortFrom(a, ntohs(w.name.Port))
	}
	return netip.AddrPort{}
}

// ntohs reads a port as the kernel keeps it.
func ntohs(p uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], p)
	return binary.BigEndian.Uint16(b[:])
}

// Read waits for packets and reads those that are there, at most Most. Its errors are
// those of package net; a closed socket's is net.ErrClosed.
func (s *Socket) Read(b *Batch) (n int, err error) {
	for i := range b.headers {
		w := &b.ways[i]
		b.replies[i] = b.replies[i][:0]
		b.vectors[i].Base = &b.packets[i][0]
		b.vectors[i].SetLen(PacketBytes)
		h := &b.headers[i].hdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&w.name)), unix.SizeofSockaddrInet6 // #nosec G103 -- its size is given
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
		h.Control = &w.info[0]
		h.SetControllen(infoBytes)
	}
	var errno syscall.Errno
	try := func(fd uintptr) bool {
		n, errno = call(unix.SYS_RECVMMSG, fd, b.headers[:])
		return errno != unix.EAGAIN
	}
	err = s.raw.Read(try)
	if err == nil && errno != 0 {
		err = &net.OpError{Op: "read", Net: "udp", Err: errno}
	}
	if err != nil {
		return 0, err
	}
	for i := range n {
		h, w := &b.headers[i], &b.ways[i]
		b.sizes[i] = int(h.len)
		w.nameLen = h.hdr.Namelen
		w.infoLen = replyInfo(w.info[:], int(h.hdr.Controllen)) // #nosec G115 -- at most infoBytes
	}
	clear(b.sizes[n:])
	return n, nil
}

// call is recvmmsg(2) or sendmmsg(2), without waiting. The runtime is not told of it: it
// takes microseconds a packet, and a runtime that is told takes the processor away and
// polls for the end, which costs more than an eighth of the whole.
func call(number, fd uintptr, hs []header) (n int, errno syscall.Errno) {
	for {
		r, _, errno := unix.RawSyscall6(number, fd, uintptr(unsafe.Pointer(&hs[0])), uintptr(len(hs)), unix.MSG_DONTWAIT, 0, 0) // #nosec G103 -- the kernel's own layout
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return 0, errno
		default:
			return int(r), 0
		}
	}
}

// replyInfo turns the packet information in the first n bytes of info into that of a
// reply from the same address, in place, and reports its length.
func replyInfo(info []byte, n int) int {
	for rest := info[:min(n, len(info))]; len(rest) >= unix.SizeofCmsghdr; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&rest[0])) // #nosec G103 -- checked above, the kernel aligns it
		size := int(h.Len)                             // #nosec G115 -- checked below
		if size < unix.SizeofCmsghdr || size > len(rest) {
			return 0
		}
		data := rest[unix.CmsgLen(0):size]
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			return put4(info, [4]byte(data[8:12])) // struct in_pktinfo: interface, local address, header destination
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			a := netip.AddrFrom16([16]byte(data[:16]))
			if a.Is4In6() {
				return put4(info, a.Unmap().As4())
			}
			return put6(info, a.As16())
		}
		rest = rest[min(unix.CmsgSpace(len(data)), len(rest)):]
	}
	return 0
}

func put4(info []byte, from [4]byte) int {
	data := putHeader(info, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
	copy(data[4:8], from[:])
	return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
}

func put6(info []byte, from [16]byte) int {
	data := putHeader(info, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	copy(data, from[:])
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}

// putHeader begins a control message of size zero bytes, which it reports.
func putHeader(info []byte, level, kind int32, size int) []byte {
	clear(info)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&info[0])) // #nosec G103 -- infoBytes is room for it
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	return info[unix.CmsgLen(0):]
}

func (w *way) address(h *unix.Msghdr) {
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(&w.name)), w.nameLen // #nosec G103 -- its size is given
	h.Control = nil
	if w.infoLen > 0 {
		h.Control = &w.info[0]
	}
	h.SetControllen(w.infoLen)
}

// Write sends the replies in b. One that cannot be sent is dropped, as by any network.
func (s *Socket) Write(b *Batch) {
	n := 0
	for i, reply := range b.replies {
		if b.sizes[i] == 0 || len(reply) == 0 {
			continue
		}
		b.outVecs[n].Base = &reply[0]
		b.outVecs[n].SetLen(len(reply))
		b.ways[i].address(&b.out[n].hdr)
		b.out[n].hdr.Iov = &b.outVecs[n]
		b.out[n].hdr.SetIovlen(1)
		n++
	}
	s.send(b.out[:n])
}

// send sends hs. A packet that the kernel refuses does not keep back the others.
func (s *Socket) send(hs []header) {
	full := false
	try := func(fd uintptr) bool {
		for len(hs) > 0 {
			n, errno := call(unix.SYS_SENDMMSG, fd, hs)
			if errno == unix.EAGAIN {
				full = true
				return false
			}
			hs = hs[max(n, 1):]
		}
		return true
	}
	// Control, unlike Write, lets readers of one socket send side by side.
	if err := s.raw.Control(func(fd uintptr) { try(fd) }); err == nil && full {
		_ = s.raw.Write(try) // waits for room; an error means that the socket is closed
	}
}

// Return is the way back to one client, for a reply that comes later.
type Return struct{ way way }

// Return is the way back to the sender of the ith packet.
func (b *Batch) Return(i int) Return { return Return{b.ways[i]} }

// Send sends one reply; an empty one is none. It drops what it cannot send.
func (s *Socket) Send(r *Return, reply []byte) {
	if len(reply) == 0 {
		return
	}
	v := unix.Iovec{Base: &reply[0]}
	v.SetLen(len(reply))
	var hs [1]header
	hs[0].hdr.Iov = &v
	hs[0].hdr.SetIovlen(1)
	r.way.address(&hs[0].hdr)
	s.send(hs[:])
}

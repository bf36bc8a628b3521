package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// PacketConn wraps the UDP socket f, capture.Doors.DNSUDP, so that a reply leaves
// from the address that was asked: a resolver drops an answer from any other, and
// connection tracking does not know it. Replies must be written to the net.Addr
// value that ReadFrom reported. The result is safe for concurrent use. The caller
// closes it, and f.
func PacketConn(f *os.File) (net.PacketConn, error) {
	pc, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("packet connection: %w", err)
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("packet connection: %s is not UDP", pc.LocalAddr().Network()), pc.Close())
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet connection: %w", err), conn.Close())
	}
	return &packetConn{conn, raw}, nil
}

// Threat: the process that made the socket keeps a copy and clears O_NONBLOCK,
// which belongs to the open file and not to a descriptor: every read and write
// would block a thread -> no call here waits in the kernel, whatever the flag
// says. Nothing is left over.
type packetConn struct {
	*net.UDPConn
	raw syscall.RawConn
}

// peer is the client of one packet, and which of our addresses it asked.
type peer struct {
	client netip.AddrPort
	at     unix.Sockaddr // client, as the kernel reported it
	info   []byte        // control message that sends from the address asked; nil: the kernel chooses
}

func (p *peer) Network() string { return "udp" }
func (p *peer) String() string  { return p.client.String() }

// AddrPort reports the client's address.
func (p *peer) AddrPort() netip.AddrPort { return p.client }

// ReadFrom reads one packet. The address it reports carries what WriteTo needs.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	oob := make([]byte, unix.CmsgSpace(unix.SizeofInet6Pktinfo))
	var n, oobn int
	var from unix.Sockaddr
	var err error
	waitErr := c.raw.Read(func(fd uintptr) bool {
		n, oobn, _, from, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = c.opError("read", waitErr, err); err != nil {
		return 0, nil, err
	}
	return n, &peer{client: addrPort(from), at: from, info: replyInfo(oob[:oobn])}, nil
}

// WriteTo answers addr, which came from ReadFrom, from the address it asked.
func (c *packetConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	p, ok := addr.(*peer)
	if !ok {
		return 0, &net.OpError{Op: "write", Net: "udp", Addr: addr, Err: errors.New("address is not from ReadFrom")}
	}
	var n int
	var err error
	waitErr := c.raw.Write(func(fd uintptr) bool {
		n, err = unix.SendmsgN(int(fd), b, p.info, p.at, unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN)
	})
	return n, c.opError("write", waitErr, err)
}

// opError joins the errors of waiting and of a call as package net does.
func (c *packetConn) opError(op string, waitErr, err error) error {
	if waitErr != nil {
		err = waitErr
	}
	if err == nil {
		return nil
	}
	var known *net.OpError
	if errors.As(err, &known) {
		return err
	}
	return &net.OpError{Op: op, Net: "udp", Addr: c.LocalAddr(), Err: err}
}

// addrPort is sa's address; one that is IPv4 in IPv6 becomes IPv4.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// replyInfo turns the packet info of a packet that arrived into that of a reply
// from the same address.
func replyInfo(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			// struct in_pktinfo: interface, local address, header destination.
			info := &unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[8:12])}
			return unix.PktInfo4(info)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			info := &unix.Inet6Pktinfo{Addr: [16]byte(m.Data[:16])}
			return unix.PktInfo6(info)
		}
	}
	return nil
}

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// PacketConn wraps the UDP socket of Doors (the caller still closes f) so
// that a reply leaves from the address that was asked: a resolver drops an
// answer from anyone else, and connection tracking does not know it. Replies
// must be written to the very net.Addr that ReadFrom reported. Safe for
// concurrent use; the caller closes it.
func PacketConn(f *os.File) (net.PacketConn, error) {
	pc, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("packet connection: %w", err)
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("packet connection: %s is not UDP", pc.LocalAddr().Network()), pc.Close())
	}
	return &packetConn{UDPConn: conn}, nil
}

type packetConn struct {
	*net.UDPConn
}

// peer is who asked, and at which of our addresses.
type peer struct {
	client netip.AddrPort
	info   []byte // control message that sends from the address asked; nil: the kernel chooses
}

func (p *peer) Network() string { return "udp" }
func (p *peer) String() string  { return p.client.String() }

// AddrPort reports the client's address.
func (p *peer) AddrPort() netip.AddrPort { return p.client }

// ReadFrom reads one packet. The address it reports carries what WriteTo needs.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	oob := make([]byte, unix.CmsgSpace(unix.SizeofInet6Pktinfo))
	n, oobn, _, client, err := c.ReadMsgUDPAddrPort(b, oob)
	if err != nil {
		return n, nil, err
	}
	client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
	return n, &peer{client: client, info: replyInfo(oob[:oobn])}, nil
}

// WriteTo answers addr, which came from ReadFrom, from the address it asked.
func (c *packetConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	p, ok := addr.(*peer)
	if !ok {
		return 0, &net.OpError{Op: "write", Net: "udp", Addr: addr, Err: errors.New("address is not from ReadFrom")}
	}
	n, _, err := c.WriteMsgUDPAddrPort(b, p.info, p.client)
	return n, err
}

// replyInfo turns the packet info of what arrived into the one that sends from
// the same address.
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

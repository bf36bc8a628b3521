package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// packet is one that was seen in the world.
type packet struct {
	Proto    byte // IP protocol
	Src, Dst netip.AddrPort
	SYN      bool // TCP: opens a connection
	Reply    bool // TCP but the opening, or UDP from a server's port
	Payload  string
	wire     bool // seen on a pod's wire
	kind     byte // of ICMPv6
}

func (p packet) String() string {
	names := map[byte]string{1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 33: "dccp", 58: "icmp6", 132: "sctp", 136: "udplite"}
	n := names[p.Proto]
	if n == "" {
		n = fmt.Sprintf("protocol %d", p.Proto)
	}
	return fmt.Sprintf("%s %s -> %s %.40q", n, p.Src, p.Dst, p.Payload)
}

// sniffer reads every packet of one interface of the world: of the only one, or
// of the end of a pod's wire, where it keeps what comes out of the pod. Since
// nothing routes anywhere else, what it has not seen has not left.
type sniffer struct {
	fd      int
	stampTo string // address for the packet that closes a record
	mu      sync.Mutex
	packets []packet
	stop    chan struct{}
	done    chan struct{}
}

const arp = 0x0608 // ETH_P_ARP in network order

const maxPackets = 1 << 20 // the tests stay far below; more is a flood and ends the record

const stampPort = 4999

func startSniffer(ifindex int, stampTo string) (*sniffer, error) {
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, err
	}
	tv := unix.NsecToTimeval((50 * time.Millisecond).Nanoseconds())
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifindex}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	s := &sniffer{fd: fd, stampTo: stampTo, stop: make(chan struct{}), done: make(chan struct{})}
	go s.read()
	return s, nil
}

func (s *sniffer) read() {
	defer close(s.done)
	buf := make([]byte, 65536)
	for {
		n, from, err := unix.Recvfrom(s.fd, buf, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			select {
			case <-s.stop:
				return
			default:
				continue
			}
		}
		if err != nil {
			return
		}
		p := parsePacket(buf[:n])
		if ll, ok := from.(*unix.SockaddrLinklayer); ok {
			if ll.Protocol == arp || ll.Pkttype == unix.PACKET_OUTGOING && (s.stampTo == "127.0.0.1" || p.Dst.Port() != stampPort) {
				continue // on the loopback it is seen once more as it comes in
			}
		}
		p.wire = s.stampTo != "127.0.0.1"
		s.keep(p)
	}
}

func (s *sniffer) keep(p packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.packets) < maxPackets {
		s.packets = append(s.packets, p)
	}
}

func (s *sniffer) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.packets)
}

// since reports what was seen since mark. The reader may be a moment behind,
// so a packet of our own closes the record: when it shows, all before it has.
func (s *sniffer) since(mark int) ([]packet, error) {
	stamp := fmt.Sprintf("end of record %d", time.Now().UnixNano())
	c, err := net.Dial("udp", net.JoinHostPort(s.stampTo, fmt.Sprint(stampPort)))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	_, _ = c.Write([]byte(stamp)) // nobody listens: the refusal is expected
	for {
		select {
		case <-deadline.C:
			return nil, errors.New("the sniffer has stopped seeing packets")
		case <-tick.C:
		}
		if seen, ok := s.until(mark, stamp); ok {
			return seen, s.lost()
		}
	}
}

func (s *sniffer) until(mark int, stamp string) ([]packet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var seen []packet
	for _, p := range s.packets[mark:] {
		if p.Payload == stamp {
			return seen, true
		}
		if p.Dst.Port() != stampPort && p.Src.Port() != stampPort && !(p.Proto == unix.IPPROTO_ICMP && strings.Contains(p.Payload, "end of record")) {
			seen = append(seen, p)
		}
	}
	return nil, false
}

// lost reports packets that the kernel dropped before the sniffer read them:
// a record with holes proves nothing.
func (s *sniffer) lost() error {
	st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return err
	}
	if st.Drops > 0 {
		return fmt.Errorf("the sniffer lost %d packets", st.Drops)
	}
	return nil
}

func (s *sniffer) close() error {
	close(s.stop)
	<-s.done
	return unix.Close(s.fd)
}

func parsePacket(b []byte) packet {
	var p packet
	var src, dst netip.Addr
	var rest []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		hl := int(b[0]&15) * 4
		src, dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
		p.Proto, rest = b[9], b[min(hl, len(b)):]
	case len(b) >= 40 && b[0]>>4 == 6:
		src, dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		p.Proto, rest = b[6], b[40:]
	default:
		p.Proto, p.Payload = 255, string(b[:min(len(b), 64)])
		return p
	}
	var sport, dport uint16
	if len(rest) >= 4 && (p.Proto == 6 || p.Proto == 17 || p.Proto == 136 || p.Proto == 132 || p.Proto == 33) {
		sport, dport = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	if p.Proto == unix.IPPROTO_ICMPV6 && len(rest) > 0 {
		p.kind = rest[0]
	}
	off := 0
	switch {
	case p.Proto == 6 && len(rest) >= 20:
		off = int(rest[12]>>4) * 4
		p.SYN = rest[13]&0x12 == 0x02
		p.Reply = !p.SYN
	case (p.Proto == 17 || p.Proto == 136) && len(rest) >= 8:
		off = 8
	}
	p.Src, p.Dst = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	payload := rest[min(off, len(rest)):]
	p.Payload = string(payload[:min(len(payload), 512)])
	return p
}

// echoPackets answers each datagram with the marker from the address it was
// sent to, which a wildcard socket must be told by control message.
func echoPackets(c *net.UDPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it the reply comes from another address
		_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_PKTINFO, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
	})
	buf, oob := make([]byte, 2048), make([]byte, 256)
	for {
		_, n, _, from, err := c.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		_, _, _ = c.WriteMsgUDPAddrPort([]byte(job.Marker), oob[:n], from) // the client may be gone
	}
}

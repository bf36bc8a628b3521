package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

const (
	protoUDPLite = 136
	protoMPTCP   = 262
	sockDCCP     = 6
)

// target reads Via as address:port.
func target(j job.Job) (netip.AddrPort, error) { return netip.ParseAddrPort(j.Via) }

func sockaddr(ap netip.AddrPort) unix.Sockaddr {
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

func family(ap netip.AddrPort) int {
	if ap.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// exchange makes a socket, lets prepare change it, connects, sends the token
// and waits for the marker.
func exchange(j job.Job, typ, proto int, prepare func(fd int) error) job.Result {
	ap, err := target(j)
	if err != nil {
		return fail(err)
	}
	fd, err := unix.Socket(family(ap), typ|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	if prepare != nil {
		if err := prepare(fd); err != nil {
			return fail(err)
		}
	}
	tv := unix.NsecToTimeval(stepTimeout.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	if err := unix.Connect(fd, sockaddr(ap)); err != nil {
		return fail(fmt.Errorf("connect: %w", err))
	}
	if _, err := unix.Write(fd, []byte(j.Token)); err != nil {
		return fail(fmt.Errorf("write: %w", err))
	}
	buf := make([]byte, 2048)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return fail(fmt.Errorf("read: %w", err))
	}
	return reachedBy(buf[:n])
}

func reachedBy(b []byte) job.Result {
	r := job.Result{Status: -1, Text: first(b, 200)}
	r.Reached = containsMarker(b)
	return r
}

func tcpPlain(j job.Job) job.Result { return exchange(j, unix.SOCK_STREAM, 0, nil) }
func tcpMPTCP(j job.Job) job.Result { return exchange(j, unix.SOCK_STREAM, protoMPTCP, nil) }
func udpSend(j job.Job) job.Result  { return exchange(j, unix.SOCK_DGRAM, 0, nil) }
func udpLite(j job.Job) job.Result  { return exchange(j, unix.SOCK_DGRAM, protoUDPLite, nil) }
func sctp(j job.Job) job.Result     { return exchange(j, unix.SOCK_STREAM, unix.IPPROTO_SCTP, nil) }
func dccp(j job.Job) job.Result     { return exchange(j, sockDCCP, unix.IPPROTO_DCCP, nil) }

func tcpBindToDevice(j job.Job) job.Result {
	return exchange(j, unix.SOCK_STREAM, 0, func(fd int) error { return unix.BindToDevice(fd, "lo") })
}

func tcpMark(j job.Job) job.Result {
	return exchange(j, unix.SOCK_STREAM, 0, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1)
	})
}

func tcpTransparent(j job.Job) job.Result {
	return exchange(j, unix.SOCK_STREAM, 0, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	})
}

// tcpSourceRoute asks routers to go by way of 127.0.0.1 (RFC 791, LSRR).
func tcpSourceRoute(j job.Job) job.Result {
	return exchange(j, unix.SOCK_STREAM, 0, func(fd int) error {
		return unix.SetsockoptString(fd, unix.SOL_IP, unix.IP_OPTIONS, "\x83\x07\x04\x7f\x00\x00\x01\x01")
	})
}

// tcpFastOpen puts the token into the SYN.
func tcpFastOpen(j job.Job) job.Result {
	ap, err := target(j)
	if err != nil {
		return fail(err)
	}
	fd, err := unix.Socket(family(ap), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(stepTimeout.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	if err := unix.Sendto(fd, []byte(j.Token), unix.MSG_FASTOPEN, sockaddr(ap)); err != nil {
		return fail(err)
	}
	buf := make([]byte, 512)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return fail(err)
	}
	return reachedBy(buf[:n])
}

// tcpSplitHello writes the token a byte at a time, so that a gate that looks
// only at the first segment sees nothing.
func tcpSplitHello(j job.Job) job.Result {
	c, err := net.DialTimeout("tcp", j.Via, stepTimeout)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(stepTimeout)); err != nil {
		return fail(err)
	}
	for i := range len(j.Token) {
		if _, err := c.Write([]byte{j.Token[i]}); err != nil {
			break // answered already, or refused: the read tells
		}
	}
	return readMarker(c)
}

func udpBroadcast(j job.Job) job.Result {
	return exchange(j, unix.SOCK_DGRAM, 0, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
	})
}

// udpMulticast sends by way of the loopback interface, which outside is where
// the canary listens.
func udpMulticast(j job.Job) job.Result {
	ap, err := target(j)
	if err != nil {
		return fail(err)
	}
	fd, err := unix.Socket(family(ap), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	if ap.Addr().Is4() {
		err = unix.SetsockoptIPMreqn(fd, unix.SOL_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: 1})
	} else {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_MULTICAST_IF, 1)
	}
	if err != nil {
		return fail(err)
	}
	return outcome(unix.Sendto(fd, []byte(j.Token), 0, sockaddr(ap)), "sent")
}

func icmpDgram(j job.Job) job.Result { return icmp(j, unix.SOCK_DGRAM) }
func icmpRaw(j job.Job) job.Result   { return icmp(j, unix.SOCK_RAW) }

// icmp sends an echo request that carries the token and waits for the reply.
func icmp(j job.Job, typ int) job.Result {
	a, err := netip.ParseAddr(j.Via)
	if err != nil {
		return fail(err)
	}
	fam, proto, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	if a.Is6() {
		fam, proto, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
	}
	fd, err := unix.Socket(fam, typ|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval((stepTimeout / 3).Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	msg := append([]byte{kind, 0, 0, 0, byte(os.Getpid() >> 8), byte(os.Getpid()), 0, 1}, j.Token...)
	binary.BigEndian.PutUint16(msg[2:], checksum(msg))
	if err := unix.Sendto(fd, msg, 0, sockaddr(netip.AddrPortFrom(a, 0))); err != nil {
		return fail(fmt.Errorf("send: %w", err))
	}
	buf := make([]byte, 1500)
	for range 4 {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return fail(fmt.Errorf("receive: %w", err))
		}
		b := buf[:n]
		if typ == unix.SOCK_RAW && a.Is4() && n > 20 {
			b = b[20:]
		}
		if len(b) > 0 && (b[0] == 0 || b[0] == 129) {
			return job.Result{Reached: true, Status: -1, Text: "echo reply"}
		}
	}
	return fail(errors.New("no echo reply"))
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i]) << 8
		if i+1 < len(b) {
			sum += uint32(b[i+1])
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// rawIP writes a whole IPv4 packet, header included, of the protocol in Port.
func rawIP(j job.Job) job.Result {
	a, err := netip.ParseAddr(j.Via)
	if err != nil {
		return fail(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	dst := a.As4()
	p := make([]byte, 20, 20+len(j.Token))
	p[0], p[8], p[9] = 0x45, 64, byte(j.Port)
	copy(p[16:], dst[:])
	p = append(p, j.Token...)
	return outcome(unix.Sendto(fd, p, 0, sockaddr(netip.AddrPortFrom(a, 0))), "sent")
}

// packetSocket writes a frame below IP.
func packetSocket(j job.Job) job.Result {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_IP)))
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	return outcome(unix.Sendto(fd, []byte(j.Token), 0, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_IP), Ifindex: 1, Halen: 6}), "sent")
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// socketFamily asks only for a socket: Port is the family, QType the type,
// QClass the protocol.
func socketFamily(j job.Job) job.Result {
	typ := int(j.QType)
	if typ == 0 {
		typ = unix.SOCK_STREAM
	}
	fd, err := unix.Socket(j.Port, typ|unix.SOCK_CLOEXEC, int(j.QClass))
	if err != nil {
		return fail(err)
	}
	return outcome(unix.Close(fd), "socket made")
}

// vsock connects to the machine's host.
func vsock(job.Job) job.Result {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	// The socket is already more than the sandbox may have; who listens at the
	// other end is not this machine's business.
	return done("socket made")
}

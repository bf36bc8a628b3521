package dnsfilter

import (
	"context"
	"net"
	"syscall"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"egressd/internal/linux/mmsg"
)

// maxQueryBytes bounds one query over UDP: a question is at most 12+255+4
// bytes and an OPT record adds little. What is longer arrives cut and is
// refused as malformed.
const maxQueryBytes = 4096

// serveUDP reads queries from pc until it is closed: many at a time where the system can.
func (r *running) serveUDP(ctx context.Context, pc net.PacketConn) {
	if c, ok := pc.(syscall.Conn); ok {
		if s, err := mmsg.Open(c); err == nil {
			r.serveBatches(ctx, s)
			return
		}
	}
	r.serveOneByOne(ctx, pc)
}

// serveOneByOne is serveUDP for sockets, and systems, that read one packet at a time.
func (r *running) serveOneByOne(ctx context.Context, pc net.PacketConn) {
	u := newUDPSocket(pc)
	buf := make([]byte, maxQueryBytes)
	for errs := 0; ; {
		n, reply, err := u.read(buf)
		if err != nil {
			if errs++; !r.pause(ctx, "udp", errs, err) {
				return
			}
			continue
		}
		errs = 0
		client := addrPort(reply.addr)
		if !r.inFlight.acquire(client.Addr()) {
			// Threat: a client floods queries faster than they can be judged
			// -> its share is in flight, the rest is refused here, in the
			// reading goroutine, so that the socket's own queue fills and the
			// kernel drops. Left over: other clients of the same socket wait.
			reply.send(r.overloaded(buf[:n], client))
			continue
		}
		wire := append([]byte(nil), buf[:n]...)
		r.wg.Go(func() {
			defer r.inFlight.release(client.Addr())
			reply.send(r.answerRecovering(ctx, wire, client, false))
		})
	}
}

// udpSocket reads queries and remembers which local address each was sent to.
type udpSocket struct {
	pc  net.PacketConn
	udp *net.UDPConn // pc, when destination addresses can be learned
}

// newUDPSocket asks for destination addresses, so that a wildcard socket that
// stands for many addresses answers from the one that was asked; clients drop
// an answer from any other. Sockets that cannot tell still work.
func newUDPSocket(pc net.PacketConn) udpSocket {
	u, ok := pc.(*net.UDPConn)
	if !ok {
		return udpSocket{pc: pc}
	}
	err6 := ipv6.NewPacketConn(u).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := ipv4.NewPacketConn(u).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err4 != nil && err6 != nil {
		return udpSocket{pc: pc}
	}
	_ = freebind(u) // without it, only addresses of an interface can answer; IPv4 sockets need none
	return udpSocket{pc: pc, udp: u}
}

func (u udpSocket) read(buf []byte) (int, udpReply, error) {
	if u.udp != nil {
		n, session, err := dns.ReadFromSessionUDP(u.udp, buf)
		if err != nil {
			return 0, udpReply{}, err
		}
		return n, udpReply{socket: u, session: session, addr: session.RemoteAddr()}, nil
	}
	n, addr, err := u.pc.ReadFrom(buf)
	return n, udpReply{socket: u, addr: addr}, err
}

// udpReply is the way back to one client.
type udpReply struct {
	socket  udpSocket
	session *dns.SessionUDP // nil: the socket cannot say where a query was sent to
	addr    net.Addr        // the client
}

// send writes an answer; nil drops the query. A client that is gone is not an
// error worth keeping: it asks again.
func (r udpReply) send(wire []byte) {
	if wire == nil {
		return
	}
	if r.session != nil {
		_, _ = dns.WriteToSessionUDP(r.socket.udp, wire, r.session)
		return
	}
	_, _ = r.socket.pc.WriteTo(wire, r.addr)
}

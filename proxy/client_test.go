package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/exit"
)

// client is one way into the gate.
type client struct {
	name string
	// open asks for host:port. err says that the gate said no in the door's
	// own words.
	open func(g *testGate, host string, port uint16) (net.Conn, error)
}

// clients are the doors that can carry any protocol.
func clients() []client {
	return []client{
		{"connect", openConnect},
		{"socks5", openSocks5},
		{"socks4a", openSocks4},
		{"transparent", openCaptured},
	}
}

type refused struct{ what string }

func (r refused) Error() string { return r.what }

func dialGate(g *testGate, addr string) net.Conn {
	g.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	g.t.Cleanup(func() { c.Close() })
	return c
}

func openConnect(g *testGate, host string, port uint16) (net.Conn, error) {
	c := dialGate(g, g.explicitAddr)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", net.JoinHostPort(host, fmt.Sprint(port)))
	head, err := headOf(c)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		return nil, refused{strings.TrimSpace(strings.SplitN(head, "\r\n", 2)[0])}
	}
	return c, nil
}

// headOf reads to the empty line and not one byte more.
func headOf(c net.Conn) (string, error) {
	var b strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		if _, err := c.Read(one); err != nil {
			return b.String(), err
		}
		b.Write(one)
	}
	return b.String(), nil
}

func openSocks5(g *testGate, host string, port uint16) (net.Conn, error) {
	c := dialGate(g, g.explicitAddr)
	msg := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(host))}, host...)
	_, _ = c.Write(append(msg, byte(port>>8), byte(port)))
	reply := make([]byte, 12)
	if _, err := io.ReadFull(c, reply); err != nil {
		return nil, err
	}
	if reply[3] != 0 {
		return nil, refused{fmt.Sprint("reply ", reply[3])}
	}
	return c, nil
}

func openSocks4(g *testGate, host string, port uint16) (net.Conn, error) {
	c := dialGate(g, g.explicitAddr)
	msg := append([]byte{4, 1, byte(port >> 8), byte(port), 0, 0, 0, 1, 'u', 0}, host...)
	_, _ = c.Write(append(msg, 0))
	reply := make([]byte, 8)
	if _, err := io.ReadFull(c, reply); err != nil {
		return nil, err
	}
	if reply[1] != 90 {
		return nil, refused{fmt.Sprint("reply ", reply[1])}
	}
	return c, nil
}

// openCaptured connects to the address that the DNS door would have given out.
func openCaptured(g *testGate, host string, port uint16) (net.Conn, error) {
	dst, err := netip.ParseAddr(host)
	if err != nil {
		h, err := policy.ParseHost(host)
		if err != nil {
			g.t.Fatal(err)
		}
		dst = netip.MustParseAddr("198.18.0.7")
		g.pin(dst, h)
	}
	g.capturedDst.Store(netip.AddrPortFrom(dst, port))
	c, err := net.Dial("tcp", g.captureAddr)
	if err != nil {
		return nil, err // a reset that came before connect had returned
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	g.t.Cleanup(func() { c.Close() })
	return c, nil
}

// find is the first half of a way out: who is asked for r.
func (g *testGate) find(r policy.Request) ([]netip.Addr, policy.Decision) {
	way, d := g.leaving(someConn(g.Server)).Find(context.Background(), g.Policy.Load(), r)
	return way.Addrs, d
}

// take is the second half.
func (g *testGate) take(r policy.Request, addrs []netip.Addr) exit.Result {
	return g.leaving(someConn(g.Server)).Dial(context.Background(), r, exit.Way{Addrs: addrs})
}

// someConn is a connection for tests of what does not read from it.
func someConn(s *Server) *conn {
	nobody, _ := net.Pipe()
	return newConn(s, nobody, event.DoorHTTP)
}

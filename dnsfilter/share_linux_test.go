package dnsfilter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// dialFrom connects from another address of the loopback, as another client.
func dialFrom(t *testing.T, from netip.Addr, network, to string) *dns.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	if network == "tcp" {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := d.DialContext(t.Context(), network, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	return &dns.Conn{Conn: c}
}

func exchangeOn(c *dns.Conn, name string) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), dns.TypeA)
	if err := c.WriteMsg(m); err != nil {
		return nil, err
	}
	return c.ReadMsg()
}

// One client asks, over UDP and TCP, for names whose servers never answer:
// another's questions are answered all the same.
func TestSlowNamesOfAnother(t *testing.T) {
	up, err := ParseUpstream("127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	slow, end := make(chan struct{}, 8*maxInFlight), make(chan struct{})
	r := &Resolver{Upstreams: []Upstream{up}, ask: func(_ context.Context, _ Upstream, q *dns.Msg) (*dns.Msg, error) {
		if strings.HasPrefix(q.Question[0].Name, "slow") {
			slow <- struct{}{}
			<-end
			return nil, errors.New("the test is over")
		}
		return zone("good.test. 1 IN A 1.1.1.1")("udp", q), nil
	}}
	g := start(t, &Server{Policy: compile(t, "forward", "*.test"), Resolver: r})
	t.Cleanup(func() { close(end) })
	one, two := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	udp := dialFrom(t, one, "udp", g.addr)
	refused := 0
	for i := range maxInFlight {
		m := new(dns.Msg)
		m.SetQuestion(fmt.Sprintf("slow%d.test.", i), dns.TypeA)
		if err := udp.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		if i < maxInFlight/2 {
			<-slow // one of two families: it is on its way
			continue
		}
		if in, err := udp.ReadMsg(); err == nil && in.Rcode == dns.RcodeServerFailure {
			refused++
		}
	}
	if refused != maxInFlight/2 {
		t.Errorf("%d questions were refused, want %d", refused, maxInFlight/2)
	}
	if in, err := exchangeOn(dialFrom(t, one, "tcp", g.addr), "slow.test"); err != nil || in.Rcode != dns.RcodeServerFailure {
		t.Errorf("one more over TCP: %v, %v", in, err)
	}
	for _, network := range []string{"udp", "tcp"} {
		if in, err := exchangeOn(dialFrom(t, two, network, g.addr), "good.test"); err != nil || len(in.Answer) != 1 {
			t.Errorf("another client over %s: %v, %v", network, in, err)
		}
	}
}

// One client's silent connections leave room for another's.
func TestSilentConnectionsOfAnother(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	for range 2 * maxTCPConns {
		dialFrom(t, netip.MustParseAddr("127.0.0.1"), "tcp", g.addr)
	}
	c := dialFrom(t, netip.MustParseAddr("127.0.0.2"), "tcp", g.addr)
	if in, err := exchangeOn(c, "allowed.test"); err != nil || len(in.Answer) != 1 {
		t.Errorf("%v, %v", in, err)
	}
}

func TestShare(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	s := share{most: 8}
	taken := func(client netip.Addr) (n int) {
		for s.acquire(client) {
			n++
		}
		return n
	}
	for _, want := range []struct {
		client netip.Addr
		n      int
	}{{a, 4}, {b, 2}, {a, 0}, {c, 1}} {
		if n := taken(want.client); n != want.n {
			t.Errorf("%v got %d, want %d", want.client, n, want.n)
		}
	}
	for client, n := range map[netip.Addr]int{a: 4, b: 2, c: 1} {
		for range n {
			s.release(client)
		}
	}
	if s.total != 0 || len(s.by) != 0 {
		t.Errorf("left over: %d, %v", s.total, s.by)
	}
	if new(share).acquire(a) {
		t.Error("the zero share gave something")
	}
}

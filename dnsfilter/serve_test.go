package dnsfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

func TestServeEnds(t *testing.T) {
	silent := startUpstream(t, func(string, *dns.Msg) *dns.Msg { return nil })
	s := &Server{
		Policy: compile(t, "forward", "a.test"), Events: &recorder{},
		Resolver: &Resolver{Upstreams: []Upstream{silent.Upstream}},
	}
	pc, ln := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, pc, ln) }()

	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	busy := dialTCP(t, ln.Addr().String()) // waits for the silent upstream, as does:
	busy.send(wire(t, func(m *dns.Msg) { m.Question[0].Name = "a.test." }))
	udp, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	_, _ = udp.Write(wire(t, func(m *dns.Msg) { m.Question[0].Name = "a.test." }))
	for silent.count() < 2 { // one look-up of two families, shared by both
		runtime.Gosched()
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(tryTimeout):
		t.Fatal("Serve did not end")
	}
	// At once, not when a look-up has timed out; a goroutine that has said its
	// last word may still be on its way out.
	left := stacks("egressd/dnsfilter.(*")
	for end := time.Now().Add(tryTimeout / 10); len(left) > 0 && time.Now().Before(end); {
		runtime.Gosched()
		left = stacks("egressd/dnsfilter.(*")
	}
	if len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n\n"))
	}
	if _, err := pc.WriteTo([]byte{0}, pc.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the UDP socket is open: %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the TCP socket is open: %v", err)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a client connection is open")
	}
}

func TestServeReportsAFailedListener(t *testing.T) {
	pc, ln := listen(t)
	_ = pc.Close()
	s := &Server{}
	if err := s.Serve(t.Context(), pc, ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the other listener is open: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, nil, nil); err != nil {
		t.Errorf("Serve of nothing: %v", err)
	}
}

func TestNothingIsAnsweredUnrecorded(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	g.events.full.Store(true)
	for _, network := range []string{"udp", "tcp"} {
		m := new(dns.Msg)
		m.SetQuestion("allowed.test.", dns.TypeA)
		if in := g.ask(t, network, m); in.Rcode != dns.RcodeServerFailure || len(in.Answer) != 0 {
			t.Errorf("%s, with a full queue: %v", network, in)
		}
	}
	s := &Server{Policy: compile(t, "", "allowed.test")} // no sink
	s.Pins, _ = NewPins(zeroPrefix)
	var m dns.Msg
	if err := m.Unpack(s.answer(t.Context(), wire(t, nil), netip.AddrPort{}, false)); err != nil || m.Rcode != dns.RcodeServerFailure || len(m.Answer) != 0 {
		t.Errorf("without a sink: %v, %v", &m, err)
	}
}

// A look-up more than the bound is refused; what needs none is answered beside it.
func TestOverload(t *testing.T) {
	rec := &recorder{}
	r, _ := faked(t, fromZone("allowed.test. 60 IN A 93.184.216.34"))
	s := &Server{Policy: compile(t, "forward", "allowed.test"), Events: rec, Resolver: r}
	pc, _ := listen(t)
	run := &running{answerer: s, inFlight: share{most: 1}, failed: make(chan error, 2)}
	run.inFlight.acquire(netip.Addr{}) // one look-up is all there may be
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); run.serveUDP(ctx, pc) }()
	g := &gate{addr: pc.LocalAddr().String()}
	if m := g.query(t, "allowed.test", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("over the bound: %v", m)
	}
	if e := rec.one(t); e.Decision != "blocked" || e.Reason != policy.ReasonOverload.String() || e.Host != "allowed.test" {
		t.Errorf("event %+v", e)
	}
	if runtime.GOOS == "linux" {
		if m := g.query(t, "denied.test", dns.TypeA); m.Rcode != dns.RcodeNameError {
			t.Errorf("denied, over the bound: %v", m)
		}
	}
	run.inFlight.release(netip.Addr{})
	for range 2 { // looked up, and then out of the cache
		if m := g.query(t, "allowed.test", dns.TypeA); len(m.Answer) != 1 {
			t.Errorf("within the bound: %v", m)
		}
	}
	cancel()
	_ = pc.Close()
	<-done
	run.wg.Wait()
}

// tcpClient speaks raw length-prefixed DNS.
type tcpClient struct {
	net.Conn
	t testing.TB
}

func dialTCP(t testing.TB, addr string) tcpClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	return tcpClient{c, t}
}

func (c tcpClient) send(wire []byte) {
	c.t.Helper()
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c tcpClient) receive() (*dns.Msg, error) {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	return m, m.Unpack(b)
}

func TestTCPPipelining(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	c := dialTCP(t, g.addr)
	var got []uint16
	for i := range 100 {
		c.send(wire(t, func(m *dns.Msg) { m.Id = uint16(i) }))
	}
	for range 100 {
		m, err := c.receive()
		if err != nil || len(m.Answer) != 1 {
			t.Fatalf("%v, %v", m, err)
		}
		got = append(got, m.Id)
	}
	slices.Sort(got)
	if got[0] != 0 || got[99] != 99 || len(slices.Compact(got)) != 100 {
		t.Errorf("answers to %v", got)
	}
	c.send(wire(t, nil)[:5]) // junk gets no answer, and does not end the connection
	c.send(wire(t, nil))
	if m, err := c.receive(); err != nil || m.Id != 0x1234 {
		t.Errorf("after junk: %v, %v", m, err)
	}
}

func TestTCPOverlongQueryEndsTheConnection(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	c := dialTCP(t, g.addr)
	if _, err := c.Write([]byte{0xff, 0xff, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.receive(); err == nil {
		t.Errorf("answered %v", m)
	}
	if e := g.events.one(t); e.Decision != "blocked" || e.Reason != policy.ReasonMalformed.String() {
		t.Errorf("event %+v", e)
	}
}

func TestTCPConnectionsAreBounded(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	var held []tcpClient
	for range maxTCPConns / 2 { // as many as it leaves for others
		c := dialTCP(t, g.addr)
		c.send(wire(t, nil))
		if _, err := c.receive(); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	extra := dialTCP(t, g.addr)
	_, _ = extra.Write(append([]byte{0, byte(len(wire(t, nil)))}, wire(t, nil)...)) // may be closed already
	if _, err := extra.receive(); err == nil {
		t.Error("one connection more than the bound was served")
	}
	_ = held[0].Close()
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) { // until the server has seen the close
		c := dialTCP(t, g.addr)
		if _, err := c.Write(append([]byte{0, byte(len(wire(t, nil)))}, wire(t, nil)...)); err == nil {
			if m, err := c.receive(); err == nil && len(m.Answer) == 1 {
				return
			}
		}
	}
	t.Error("room was not given back")
}

// TestIdleTCP looks at the deadline itself: waiting it out would take long.
func TestIdleTCP(t *testing.T) {
	client, server := net.Pipe()
	defer func() { _ = client.Close() }()
	c := &deadlines{Conn: server}
	r := &running{answerer: &Server{Events: &recorder{}}, tcp: share{most: 1}, conns: map[net.Conn]struct{}{}}
	r.keep(c, netip.Addr{})
	done := make(chan struct{})
	go func() { defer close(done); r.serveConn(t.Context(), c, netip.AddrPort{}) }()
	_, _ = client.Write([]byte{0}) // half a length keeps nothing open
	<-done
	if c.reads != 1 {
		t.Errorf("%d read deadlines for one message, want one for all of it", c.reads)
	}
}

// deadlines counts read deadlines and lets each run out after the first byte.
type deadlines struct {
	net.Conn
	reads int
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.reads++
	if left := time.Until(at); left <= 0 || left > tcpIdle {
		return errors.New("not the idle deadline")
	}
	return d.Conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
}

// TestNoDescriptorLeak asks a lot and counts descriptors.
func TestNoDescriptorLeak(t *testing.T) {
	up := startUpstream(t, zone("a.test. 1 IN A 1.1.1.1"))
	g := start(t, &Server{Policy: compile(t, "forward", "*.test"), Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}})
	count := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("no way to count descriptors here: %v", err)
		}
		return len(files)
	}
	warm := func(n int) {
		for i := range n {
			name := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + ".test"
			if m := g.query(t, name, dns.TypeA); m.Rcode == dns.RcodeServerFailure {
				t.Fatalf("query %d: %v", i, m)
			}
		}
	}
	warm(10)
	before := count()
	warm(maxInFlight + 100) // more than there are slots: each is given back
	deadline := time.Now().Add(2 * time.Second)
	for count() > before+2 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if after := count(); after > before+2 {
		t.Errorf("%d descriptors, were %d", after, before)
	}
}

// TestWildcardSocketAnswersFromTheAddressAsked matters where addresses are
// local without being redirected: clients drop an answer from elsewhere.
func TestWildcardSocketAnswersFromTheAddressAsked(t *testing.T) {
	for _, network := range []string{"udp", "udp4"} { // dual-stack and IPv4 alone
		t.Run(network, func(t *testing.T) { askOddAddress(t, network) })
	}
}

func askOddAddress(t *testing.T, network string) {
	pc, err := net.ListenPacket(network, "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Policy: compile(t, "", "allowed.test"), Events: &recorder{}}
	s.Pins, _ = NewPins(zeroPrefix)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, pc, nil) }()
	defer func() { cancel(); <-done }()
	_, port, _ := net.SplitHostPort(pc.LocalAddr().String())
	g := &gate{addr: net.JoinHostPort("127.7.7.7", port)} // a connected client: hears only this address
	if runtime.GOOS != "linux" {
		g.addr = net.JoinHostPort("127.0.0.1", port)
	}
	if m := g.query(t, "allowed.test", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("answer %v", m)
	}
}

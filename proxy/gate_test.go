package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
	"egressd/proxy/internal/socket"
)

// testGate is a Server whose look-ups and connections are counted and lead to
// origins of the test.
type testGate struct {
	*Server
	t testing.TB

	mu      sync.Mutex              // guards the maps
	answers map[string][]netip.Addr // name → addresses; others do not exist
	origins map[string]string       // address as judged → address dialled
	pins    map[netip.Addr]policy.Host
	sink    *memSink

	lookups, dials atomic.Int64
	explicitAddr   string
	captureAddr    string
	capturedDst    atomic.Value // netip.AddrPort that captured connections were going to
}

// public is where every name of a test resolves to unless it says otherwise.
var public = netip.MustParseAddr("93.184.216.34")

func newGate(t testing.TB, rules ...string) *testGate {
	t.Helper()
	g := &testGate{
		t: t, answers: map[string][]netip.Addr{}, origins: map[string]string{},
		pins: map[netip.Addr]policy.Host{}, sink: &memSink{},
	}
	g.Server = &Server{
		Policy: new(policy.Current), Resolver: g, Names: g, Events: g.sink, Identity: Identity{Session: "test"},
	}
	g.Server.dialFunc = g.dialOrigin
	g.Server.originalDst = func(net.Conn) (netip.AddrPort, error) {
		return g.capturedDst.Load().(netip.AddrPort), nil
	}
	g.setPolicy(rules...)
	return g
}

// setPolicy puts rules in force: "deny X" denies, others allow.
func (g *testGate) setPolicy(rules ...string) {
	g.t.Helper()
	g.store(&policy.Document{}, rules...)
}

// store puts doc in force, with rules as setPolicy has them.
func (g *testGate) store(doc *policy.Document, rules ...string) {
	g.t.Helper()
	for i, r := range rules {
		pos := policy.Pos{File: "test", Line: i + 1}
		switch {
		case r == "audit":
			doc.Audit = true
		case strings.HasPrefix(r, "deny "):
			doc.Deny = append(doc.Deny, policy.Entry{Text: strings.TrimPrefix(r, "deny "), Pos: pos})
		default:
			doc.Allow = append(doc.Allow, policy.Entry{Text: r, Pos: pos})
		}
	}
	p, err := policy.Compile(doc)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Policy.Store(p)
}

// start serves the explicit and the captured door until the test ends.
func (g *testGate) start() *testGate {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	explicit, capture := listenLocal(g.t), listenLocal(g.t)
	g.explicitAddr, g.captureAddr = explicit.Addr().String(), capture.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Serve(ctx, explicit); err != nil {
			g.t.Error(err)
		}
	})
	wg.Go(func() {
		if err := g.ServeTransparent(ctx, capture); err != nil {
			g.t.Error(err)
		}
	})
	g.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for g.servingOn() < 2 { // both Serve calls know their listeners
		runtime.Gosched()
	}
	return g
}

func (g *testGate) servingOn() int {
	return g.serving.Len()
}

func (g *testGate) Lookup(_ context.Context, name policy.Host) ([]netip.Addr, error) {
	g.lookups.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if a, ok := g.answers[name.Name()]; ok {
		return a, nil
	}
	return nil, &net.DNSError{IsNotFound: true}
}

func (g *testGate) NameOf(a netip.Addr) (policy.Host, bool, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.pins[a]
	return h, ok, netip.MustParsePrefix("198.18.0.0/15").Contains(a)
}

func (g *testGate) dialOrigin(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if err := d.ControlContext(ctx, network, address, nil); err != nil {
		return nil, err
	}
	g.dials.Add(1)
	g.mu.Lock()
	to, ok := g.origins[address]
	g.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// name makes name resolve to the public address and lead to origin at port.
func (g *testGate) name(name string, port uint16, origin string) {
	g.answer(name, public)
	g.leads(netip.AddrPortFrom(public, port).String(), origin)
}

// answer makes name resolve to addrs.
func (g *testGate) answer(name string, addrs ...netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[name] = addrs
}

// leads makes connections to addr, as judged, arrive at origin.
func (g *testGate) leads(addr, origin string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.origins[addr] = origin
}

// pin makes a stand for h.
func (g *testGate) pin(a netip.Addr, h policy.Host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pins[a] = h
}

// memSink keeps events.
type memSink struct {
	mu     sync.Mutex
	events []eventtest.Line
	full   bool
	hook   func(eventtest.Line) // called before an event is kept; set before the first
}

func (m *memSink) Emit(e event.Event) error {
	if m.hook != nil {
		m.hook(eventtest.Of(e))
	}
	m.mu.Lock()
	full := m.full
	m.mu.Unlock()
	if full {
		return errors.New("full")
	}
	m.keep(eventtest.Of(e))
	return nil
}

func (m *memSink) keep(l eventtest.Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, l)
}

func (m *memSink) all(typ string) []eventtest.Line {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.events), func(e eventtest.Line) bool { return e.Type != typ })
}

// decision waits for the n-th decision and reports it.
func (g *testGate) decision(n int) eventtest.Line {
	g.t.Helper()
	return g.event("network.connected", n)
}

func (g *testGate) event(typ string, n int) eventtest.Line {
	g.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; {
		if evs := g.sink.all(typ); len(evs) >= n {
			return evs[n-1]
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("no %s number %d; have %+v", typ, n, g.sink.all(typ))
		}
		time.Sleep(time.Millisecond) // polling: the event follows the bytes the client sees
	}
}

func listenLocal(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serveOrigin serves every connection with serve until the test ends.
func serveOrigin(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	ln := listenLocal(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				serve(c)
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}

// echo sends back what it gets, and ends when the client has ended.
func echo(c net.Conn) {
	_, _ = io.Copy(c, readOnly{c}) // no splice: its pipes would be counted as ours
	_ = socket.HalfClose(c)
}

// httpOK answers every request.
func httpOK(c net.Conn) {
	br := bufio.NewReader(c)
	for {
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"); err != nil {
			return
		}
	}
}

var testCert = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"*"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// tlsEcho is echo inside TLS, for any server name.
func tlsEcho(c net.Conn) {
	s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{testCert()}})
	_, _ = io.Copy(s, s)
	_ = s.Close()
}

// itoa spells a port.
func itoa(port uint16) string { return strconv.Itoa(int(port)) }

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func hostOf(t testing.TB, s string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// fill makes the sink take no more.
func (m *memSink) fill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = true
}

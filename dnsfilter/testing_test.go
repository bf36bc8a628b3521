package dnsfilter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
)

// TestMain fails the suite when a goroutine of this package outlives its test.
func TestMain(m *testing.M) {
	code := m.Run()
	if stacks := leftovers(); code == 0 && stacks != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", stacks)
		code = 99
	}
	os.Exit(code)
}

// leftovers reports the stacks of goroutines that run our code, waiting a
// moment for those on their way out.
func leftovers() string {
	deadline := time.Now().Add(2 * time.Second)
	for {
		left := stacks("egressd/dnsfilter.")
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
		runtime.Gosched()
	}
}

// stacks lists the other goroutines that have prefix in a frame.
func stacks(prefix string) []string {
	buf := make([]byte, 1<<20)
	var left []string
	for i, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		frames, _, _ := strings.Cut(g, "created by ")
		if i > 0 && strings.Contains(frames, prefix) {
			left = append(left, g)
		}
	}
	return left
}

// compile makes a policy from rules; "!rule" denies, "name=addr" is a hosts entry.
func compile(t testing.TB, mode string, rules ...string) *policy.Current {
	t.Helper()
	var m policy.DNSMode
	if err := m.UnmarshalText([]byte(mode)); err != nil {
		t.Fatal(err)
	}
	doc := &policy.Document{DNS: policy.DNS{Mode: m}}
	for i, r := range rules {
		e := policy.Entry{Text: r, Pos: policy.Pos{File: "--allow", Line: i + 1}}
		switch {
		case r == "audit":
			doc.Audit = true
		case strings.HasPrefix(r, "!"):
			e.Text = r[1:]
			doc.Deny = append(doc.Deny, e)
		case strings.Contains(r, "="):
			doc.Hosts = append(doc.Hosts, e)
		default:
			doc.Allow = append(doc.Allow, e)
		}
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	c := new(policy.Current)
	c.Store(p)
	return c
}

func host(t testing.TB, s string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// recorder is a sink that keeps what it takes.
type recorder struct {
	mu     sync.Mutex
	events []eventtest.Line
	full   atomic.Bool
}

func (r *recorder) Emit(e event.Event) error {
	if r.full.Load() {
		return errors.New("queue full")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtest.Of(e))
	return nil
}

// take reports the events so far and forgets them.
func (r *recorder) take() []eventtest.Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.events
	r.events = nil
	return e
}

// one reports the only event so far.
func (r *recorder) one(t testing.TB) eventtest.Line {
	t.Helper()
	e := r.take()
	if len(e) != 1 {
		t.Fatalf("%d events, want exactly one: %+v", len(e), e)
	}
	return e[0]
}

// gate is a running Server and a client's view of it.
type gate struct {
	*Server
	events *recorder
	addr   string
	cancel context.CancelFunc
	done   chan error
}

// start serves s on loopback, UDP and TCP on one port, until the test ends.
func start(t testing.TB, s *Server) *gate {
	t.Helper()
	g := &gate{Server: s, events: &recorder{}, done: make(chan error, 1)}
	if s.Events == nil {
		s.Events = g.events
	}
	if s.Pins == nil {
		s.Pins, _ = NewPins(netip.Prefix{})
	}
	pc, ln := listen(t)
	g.addr = pc.LocalAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	go func() { g.done <- s.Serve(ctx, pc, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-g.done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return g
}

// listen opens UDP and TCP on one free loopback port.
func listen(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 20 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", pc.LocalAddr().String())
		if err == nil {
			return pc, ln
		}
		_ = pc.Close()
	}
	t.Fatal("no port free for both UDP and TCP")
	return nil, nil
}

// ask sends m over network and returns the answer.
func (g *gate) ask(t testing.TB, network string, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: 5 * time.Second, UDPSize: dns.MaxMsgSize}
	in, _, err := c.Exchange(m, g.addr)
	if err != nil {
		t.Fatalf("%s %v: %v", network, m.Question, err)
	}
	return in
}

// query asks for one name and type over UDP, with EDNS.
func (g *gate) query(t testing.TB, name string, qtype uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), qtype)
	m.SetEdns0(4096, false)
	return g.ask(t, "udp", m)
}

// raw sends bytes over UDP and reports what comes back, nil when nothing does. If nothing
// should, it looks for a moment from the event on, which is written before any answer.
func (g *gate) raw(t *testing.T, wire []byte, answered bool) []byte {
	t.Helper()
	c, err := net.Dial("udp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(wire); err != nil {
		t.Fatal(err)
	}
	patience := 20 * time.Second
	if !answered {
		waitFor(t, func() bool { g.events.mu.Lock(); defer g.events.mu.Unlock(); return len(g.events.events) > 0 })
		patience = 20 * time.Millisecond
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, dns.MaxMsgSize)
	n, err := c.Read(buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// addrsOf lists the addresses of an answer.
func addrsOf(m *dns.Msg) []string {
	var out []string
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			out = append(out, rr.A.String())
		case *dns.AAAA:
			out = append(out, rr.AAAA.String())
		}
	}
	return out
}

// ede reports the extended error of an answer.
func ede(m *dns.Msg) (code uint16, text string, ok bool) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, is := o.(*dns.EDNS0_EDE); is {
				return e.InfoCode, e.ExtraText, true
			}
		}
	}
	return 0, "", false
}

// upstream is a fake recursive resolver on loopback that counts questions.
type upstream struct {
	Upstream
	udp, tcp atomic.Int64
	mu       sync.Mutex
	asked    []*dns.Msg
}

// startUpstream answers with reply (nil: silence) over UDP and TCP.
func startUpstream(t testing.TB, reply func(network string, q *dns.Msg) *dns.Msg) *upstream {
	t.Helper()
	u := &upstream{}
	pc, ln := listen(t)
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		network := w.RemoteAddr().Network()
		if network == "udp" {
			u.udp.Add(1)
		} else {
			u.tcp.Add(1)
		}
		u.mu.Lock()
		u.asked = append(u.asked, q.Copy())
		u.mu.Unlock()
		if m := reply(network, q); m != nil {
			_ = w.WriteMsg(m)
		}
	})
	for _, srv := range []*dns.Server{{PacketConn: pc, Handler: handler}, {Listener: ln, Handler: handler}} {
		ready, done := make(chan struct{}), make(chan struct{})
		srv.NotifyStartedFunc = func() { close(ready) }
		go func() { defer close(done); _ = srv.ActivateAndServe() }()
		<-ready
		t.Cleanup(func() { _ = srv.Shutdown(); <-done })
	}
	var err error
	if u.Upstream, err = ParseUpstream(pc.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	return u
}

// seen reports the questions so far.
func (u *upstream) seen() []*dns.Msg {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*dns.Msg(nil), u.asked...)
}

func (u *upstream) count() int64 { return u.udp.Load() + u.tcp.Load() }

// zone answers from records in presentation format; names without any are
// NXDOMAIN, types without any are empty, both with an SOA of 30 seconds.
func zone(lines ...string) func(string, *dns.Msg) *dns.Msg {
	var rrs []dns.RR
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		rrs = append(rrs, rr)
	}
	return func(_ string, q *dns.Msg) *dns.Msg {
		m := new(dns.Msg)
		m.SetReply(q)
		name, known := dns.CanonicalName(q.Question[0].Name), false
		for _, rr := range rrs {
			if rr.Header().Name != name {
				continue
			}
			known = true
			if c, ok := rr.(*dns.CNAME); ok {
				m.Answer = append(m.Answer, rr)
				name = c.Target
			} else if rr.Header().Rrtype == q.Question[0].Qtype {
				m.Answer = append(m.Answer, rr)
			}
		}
		if len(m.Answer) == 0 {
			soa, _ := dns.NewRR(". 60 IN SOA ns.test. root.test. 1 2 3 4 30")
			m.Ns = []dns.RR{soa}
		}
		if !known {
			m.Rcode = dns.RcodeNameError
		}
		return m
	}
}

// waitFor waits until ok, which nothing signals.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

package dnsfilter

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

// upstreamOf is l as an upstream.
func upstreamOf(t *testing.T, l *listener) Upstream {
	t.Helper()
	u, err := ParseUpstream(l.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// reply answers the question q, which came from from, out of z.
func (l *listener) reply(t *testing.T, q []byte, from net.Addr, z func(string, *dns.Msg) *dns.Msg) {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(q); err != nil {
		t.Fatal(err)
	}
	answer := z("udp", m)
	answer.Compress = true // as all servers do: it is plain
	b, err := answer.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.WriteTo(b, from); err != nil {
		t.Fatal(err)
	}
}

// both reads the two questions of one look-up: A, AAAA.
func (l *listener) both(t *testing.T) (qs [2][]byte, from net.Addr) {
	t.Helper()
	for i := range qs {
		qs[i], from = l.next(t)
		if got := qs[i][len(qs[i])-optBytes-3]; got != byte(types[i]) {
			t.Fatalf("question %d is of type %d", i, got)
		}
	}
	return qs, from
}

// client is a socket that asks g without waiting.
func (g *gate) client(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

func asks(t *testing.T, c net.Conn, id uint16, name string) {
	t.Helper()
	if _, err := c.Write(wire(t, func(m *dns.Msg) { m.Id, m.Question[0].Name = id, name })); err != nil {
		t.Fatal(err)
	}
}

func hears(t *testing.T, c net.Conn) *dns.Msg {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	if err := m.Unpack(buf[:n]); err != nil {
		t.Fatal(err)
	}
	return m
}

// Queries for one name wait for one look-up, whoever asks, and each is answered and recorded.
func TestLatersShareALookUp(t *testing.T) {
	up := newListener(t)
	r := &Resolver{Upstreams: []Upstream{upstreamOf(t, up)}}
	g := start(t, &Server{Policy: compile(t, "forward", "*.test"), Resolver: r})
	one, two := g.client(t), g.client(t)
	const each = 20
	for i := range uint16(each) {
		asks(t, one, i, "a.test.")
		asks(t, two, 100+i, "A.Test.")
	}
	qs, from := up.both(t)
	// All wait: then what none waits for is still answered.
	asks(t, one, 999, "denied.example.")
	if m := hears(t, one); m.Id != 999 || m.Rcode != dns.RcodeNameError {
		t.Errorf("%v", m)
	}
	waitFor(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.flights) == 1 && r.flights[0].waiters == 2*each
	})
	z := zone("a.test. 60 IN A 93.184.216.34")
	up.reply(t, qs[1], from, z)
	up.reply(t, qs[0], from, z)
	for first, c := range map[uint16]net.Conn{0: one, 100: two} {
		var ids []uint16
		for range each {
			m := hears(t, c)
			ids = append(ids, m.Id-first)
			if got := addrsOf(m); !slices.Equal(got, []string{"93.184.216.34"}) || c == two && m.Question[0].Name != "A.Test." {
				t.Errorf("%v", m)
			}
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != each || ids[each-1] != each-1 {
			t.Errorf("answers %v", ids)
		}
	}
	if e := g.events.take(); len(e) != 2*each+1 {
		t.Errorf("%d events", len(e))
	}
	r.lines.idle(t)
}

// A waiting query is judged by the policy in force when it is answered: an answer that was
// denied in the meantime is not sent, nor is an address in a denied class.
func TestLatersAreJudgedAnew(t *testing.T) {
	up := newListener(t)
	c := compile(t, "forward", "*.test")
	g := start(t, &Server{Policy: c, Resolver: &Resolver{Upstreams: []Upstream{upstreamOf(t, up)}}})
	client := g.client(t)
	asks(t, client, 1, "a.test.")
	qs, from := up.both(t)
	c.Store(compile(t, "forward", "*.test", "!a.test").Load())
	z := zone("a.test. 60 IN A 93.184.216.34", "b.test. 60 IN A 93.184.216.34", "b.test. 60 IN AAAA ::ffff:10.0.0.1")
	for _, q := range qs {
		up.reply(t, q, from, z)
	}
	if m := hears(t, client); m.Rcode != dns.RcodeNameError || len(m.Answer) != 0 {
		t.Errorf("denied meanwhile: %v", m)
	}
	if e := g.events.one(t); e.Decision != "blocked" {
		t.Errorf("%+v", e)
	}
	asks(t, client, 2, "b.test.")
	qs, from = up.both(t)
	for _, q := range qs {
		up.reply(t, q, from, z)
	}
	if m := hears(t, client); m.Rcode != dns.RcodeNameError || len(m.Answer) != 0 {
		t.Errorf("an inner address of the other family: %v", m)
	}
	if e := g.events.one(t); e.Reason != policy.ReasonIPProhibited.String() {
		t.Errorf("%+v", e)
	}
}

// When Serve ends, what waits is recorded, and nothing is left of it.
func TestServeEndsWhileQueriesWait(t *testing.T) {
	up := newListener(t)
	r := &Resolver{Upstreams: []Upstream{upstreamOf(t, up)}}
	g := start(t, &Server{Policy: compile(t, "forward", "*.test"), Resolver: r})
	client := g.client(t)
	asks(t, client, 1, "a.test.")
	asks(t, client, 2, "a.test.")
	asks(t, client, 3, "b.test.")
	up.both(t)
	up.both(t)
	waitFor(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.flights) == 2 && r.flights[0].waiters+r.flights[1].waiters == 3
	})
	g.cancel()
	if err := <-g.done; err != nil {
		t.Error(err)
	}
	g.done <- nil // for the end of the test
	r.lines.idle(t)
	if left := stacks("dnsfilter.(*line)"); len(r.flights)+len(r.calls) != 0 || len(left) > 0 {
		t.Errorf("%d look-ups, goroutines %v", len(r.flights), left)
	}
	e := g.events.take()
	if len(e) != 3 || e[0].Reason != policy.ReasonInternal.String() {
		t.Errorf("%+v", e)
	}
	run := &running{answerer: g.Server, leaving: true}
	run.inFlight.most = 1
	l := &later{run: run, resolver: r, name: host(t, "a.test")}
	if l.wait(t.Context(), new(outbox)) || l.err == nil || len(r.flights) != 0 {
		t.Error("a query begins to wait while Serve ends")
	}
}

// A bug in answering a query that has waited costs that one its answer.
func TestLaterMeetsABug(t *testing.T) {
	up := startUpstream(t, zone("a.test. 60 IN A 93.184.216.34"))
	s := &Server{Policy: compile(t, "forward", "*.test"), Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}}
	var routed atomic.Int64
	s.Route = func(netip.AddrPort) *Server {
		if routed.Add(1) == 2 {
			panic("the route has a bug")
		}
		return s
	}
	g := start(t, s)
	if m := g.query(t, "a.test", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("%v", m)
	}
	if e := g.events.one(t); e.Reason != policy.ReasonInternal.String() {
		t.Errorf("%+v", e)
	}
	if m := g.query(t, "a.test", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("the next: %v", m)
	}
}

// What one gate's upstreams said answers no query of another.
func TestLaterOfAnotherGate(t *testing.T) {
	mine, theirs := new(Resolver), new(Resolver)
	a := host(t, "a.test")
	l := &later{resolver: theirs, name: a, result: found{addrs: loopback()}}
	for _, tt := range []struct {
		r    *Resolver
		name policy.Host
		ok   bool
	}{{theirs, a, true}, {mine, a, false}, {theirs, host(t, "b.test"), false}} {
		f, err, now := heardOrKnown(&task{heard: l, verdict: verdict{host: tt.name}}, tt.r)
		if !now || (err == nil) != tt.ok || (len(f.addrs) > 0) != tt.ok {
			t.Errorf("%v, %v, %v", f, err, now)
		}
	}
}

// looksUp starts a look-up, and reports its two questions and its result.
func (l *listener) looksUp(t *testing.T, r *Resolver) (c *call, qs [2][]byte, from net.Addr, result chan error) {
	t.Helper()
	result = make(chan error, 1)
	go func() {
		got, err := lookup(t, r, "a.test")
		if err == nil && !slices.Equal(got, []string{"192.0.2.1"}) {
			err = errors.New(strings.Join(got, " "))
		}
		result <- err
	}()
	qs, from = l.both(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flights[0], qs, from, result
}

// rings has the alarm ring when c is due, which is now.
func (r *Resolver) rings(c *call) {
	r.mu.Lock()
	c.due = time.Now()
	r.mu.Unlock()
	r.ring()
}

// One family has addresses: the other's question is given up when its time is over.
func TestSecondFamilyIsNotWaitedFor(t *testing.T) {
	up := newListener(t)
	r := &Resolver{Upstreams: []Upstream{upstreamOf(t, up)}}
	c, qs, from, result := up.looksUp(t, r)
	r.mu.Lock()
	if r.alarm.at != c.due || c.due != c.born.Add(tryTimeout) {
		t.Errorf("due at %v, the alarm is at %v", c.due, r.alarm.at)
	}
	r.mu.Unlock()
	up.reply(t, qs[0], from, zone("a.test. 60 IN A 192.0.2.1"))
	waitFor(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return c.hurried })
	r.mu.Lock()
	if d := time.Until(c.due); d > otherFamilyWait || r.alarm.at.After(c.due) {
		t.Errorf("due in %v, the alarm is at %v", d, r.alarm.at)
	}
	r.mu.Unlock()
	r.rings(c)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if len(r.resting) != 0 {
		t.Error("the upstream is blamed")
	}
	r.lines.idle(t)
}

// Nobody answers: each family is asked elsewhere, in a goroutine, and late replies do no harm.
func TestFirstUpstreamIsSilent(t *testing.T) {
	silent, up := newListener(t), startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	r := &Resolver{Upstreams: []Upstream{upstreamOf(t, silent), up.Upstream}}
	c, qs, from, result := silent.looksUp(t, r)
	r.rings(c)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if up.count() != 2 || len(r.resting) != 1 {
		t.Errorf("%d questions, %v", up.count(), r.resting)
	}
	silent.reply(t, qs[0], from, zone("a.test. 60 IN A 203.0.113.66"))
	r.lines.idle(t)
	// The one that rests is asked last.
	if u, _ := r.preferred(time.Now()); u != up.Upstream {
		t.Errorf("%v is asked first", u)
	}
	if got := r.order(r.Upstreams[0], true); !slices.Equal(got, []Upstream{r.Upstreams[0], up.Upstream, up.Upstream, r.Upstreams[0]}) {
		t.Errorf("order %v", got)
	}
}

// A bug in reading a reply is that upstream's failure.
func TestBugInReading(t *testing.T) {
	h := new(Resolver).readReply(&reply{to: &waiter{family: len(types)}, spelled: true})
	if !h.plain || !errors.Is(h.err, errBug) {
		t.Errorf("%+v", h)
	}
}

// The last of those that wait ends the look-up, in a goroutine or not.
func TestLeavingEndsTheQuestions(t *testing.T) {
	up := newListener(t)
	r := &Resolver{Upstreams: []Upstream{upstreamOf(t, up)}}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := r.Lookup(ctx, host(t, "a.test"))
		errs <- err
	}()
	qs, from := up.both(t)
	up.reply(t, qs[0], from, func(_ string, q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeFormatError) })
	up.next(t) // again, without EDNS, from a goroutine
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.lines.idle(t)
	if len(r.flights)+len(r.calls) != 0 {
		t.Error("the look-up goes on")
	}
}

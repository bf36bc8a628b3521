package dnsfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
)

// filled is a batch of messages from one client.
func filled(client string, messages ...[]byte) *batch {
	b := newBatch()
	for i, m := range messages {
		b.tasks[i].wire, b.tasks[i].client = m, netip.MustParseAddrPort(client)
	}
	return b
}

// sameAlone holds the replies and events of messages that are answered together
// against those of each by itself.
func sameAlone(t *testing.T, s *Server, messages ...[]byte) {
	t.Helper()
	const client = "192.0.2.1:5"
	var together, alone recorder
	s.Events = &together
	b := filled(client, messages...)
	s.answerNow(b, len(messages))
	s.Events = &alone
	for i, m := range messages {
		want := s.answer(t.Context(), m, netip.MustParseAddrPort(client), false)
		if got := b.tasks[i].reply(nil, false); !bytes.Equal(got, want) || b.tasks[i].later {
			t.Fatalf("%x: %x (later: %v), alone %x", m, got, b.tasks[i].later, want)
		}
	}
	got, want := together.take(), alone.take()
	if len(got) != len(messages) || len(want) != len(messages) {
		t.Fatalf("%d and %d events about %d messages", len(got), len(want), len(messages))
	}
	for i := range got {
		got[i].Time = want[i].Time
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Fatalf("event %+v, alone %+v", got[i], want[i])
		}
	}
}

// FuzzBatch: a query is answered and recorded beside others as it is alone.
func FuzzBatch(f *testing.F) {
	f.Add(wire(f, nil), wire(f, func(m *dns.Msg) { m.Question[0].Name = "denied.test."; m.SetEdns0(4096, true) }))
	f.Add(longName(f, 255), []byte("x"))
	f.Add(wire(f, func(m *dns.Msg) { m.Question[0].Name = "1.0.18.198.in-addr.arpa."; m.Question[0].Qtype = dns.TypePTR }), wire(f, nil)[:12])
	c := compile(f, "", "allowed.test", "*.wild.test", "!no.wild.test")
	pins, _ := NewPins(zeroPrefix)
	f.Fuzz(func(t *testing.T, one, two []byte) {
		sameAlone(t, &Server{Policy: c, Pins: pins}, one, two, wire(t, nil), two, one)
	})
}

// Names out of the cache, and those that the upstreams do not know, need no goroutine.
func TestBatchFromTheCache(t *testing.T) {
	r, calls := faked(t, fromZone("allowed.test. 300 IN A 93.184.216.34", "allowed.test. 300 IN AAAA 2606:4700::1"))
	s := &Server{Policy: compile(t, "forward", "*.test"), Resolver: r}
	ask := func(name string, qtype uint16) []byte {
		return wire(t, func(m *dns.Msg) { m.Question[0].Name, m.Question[0].Qtype = name, qtype; m.SetEdns0(1232, false) })
	}
	rec := &recorder{}
	s.Events = rec
	b := filled("192.0.2.1:5", ask("allowed.test.", dns.TypeA), ask("no.test.", dns.TypeA), ask("denied.example.", dns.TypeA))
	s.answerNow(b, 3)
	if !b.tasks[0].later || !b.tasks[1].later || b.tasks[2].later || calls.Load() != 0 {
		t.Fatalf("later: %v %v %v, %d questions went out", b.tasks[0].later, b.tasks[1].later, b.tasks[2].later, calls.Load())
	}
	if e := rec.one(t); e.Host != "denied.example" {
		t.Errorf("%+v: what comes later has no event yet", e)
	}
	for _, name := range []string{"allowed.test", "no.test"} {
		_, _ = r.Lookup(t.Context(), host(t, name))
	}
	asked := calls.Load()
	sameAlone(t, s, ask("AlloWed.test.", dns.TypeA), ask("allowed.test.", dns.TypeAAAA), ask("no.test.", dns.TypeA), ask("allowed.test.", dns.TypeMX))
	if calls.Load() != asked {
		t.Error("an upstream was asked for what is in the cache")
	}
}

// failing refuses every event about one name.
type failing struct {
	recorder
	name string
}

func (f *failing) Emit(e event.Event) error {
	if eventtest.Of(e).Host == f.name {
		return errors.New("no room")
	}
	return f.recorder.Emit(e)
}

// Of a batch, what was not recorded is not answered, and nothing else is kept back.
func TestBatchUnrecorded(t *testing.T) {
	named := func(name string) []byte { return wire(t, func(m *dns.Msg) { m.Question[0].Name = name }) }
	for _, name := range []string{"b.test", "denied.example"} {
		sink := &failing{name: name}
		s := &Server{Policy: compile(t, "", "*.test"), Events: sink, Pins: newPins(t, "198.18.0.0/24")}
		b := filled("192.0.2.1:5", named("a.test."), named("b.test."), named("denied.example."), named("c.test."))
		s.answerNow(b, 4)
		for i, want := range []string{"a.test", "b.test", "denied.example", "c.test"} {
			var m dns.Msg
			if err := m.Unpack(b.tasks[i].reply(nil, false)); err != nil {
				t.Fatal(err)
			}
			if failed := m.Rcode == dns.RcodeServerFailure; failed != (want == name) || failed && len(m.Answer) > 0 {
				t.Errorf("%s, when %s is not recorded: %v", want, name, &m)
			}
		}
		if n := len(sink.take()); n != 3 {
			t.Errorf("%d events", n)
		}
	}
}

// Each query of a batch is recorded by the Server that its client is led to.
func TestBatchRoutes(t *testing.T) {
	var mine, theirs recorder
	to := &Server{Policy: compile(t, "", "b.test"), Events: &theirs, Pins: newPins(t, "198.18.0.0/24"), Session: "theirs"}
	front := &Server{Policy: compile(t, "", "a.test"), Events: &mine, Pins: newPins(t, "198.18.0.0/24"), Session: "mine"}
	front.Route = func(c netip.AddrPort) *Server {
		if c.Addr().String() == "192.0.2.2" {
			return to
		}
		return front
	}
	q := wire(t, func(m *dns.Msg) { m.Question[0].Name = "b.test." })
	b := filled("192.0.2.1:5", q, q, q)
	b.tasks[1].client = netip.MustParseAddrPort("192.0.2.2:5")
	front.answerNow(b, 3)
	for i, rcode := range []int{dns.RcodeNameError, dns.RcodeSuccess, dns.RcodeNameError} {
		if got := int(b.tasks[i].reply(nil, false)[3] & 0xf); got != rcode {
			t.Errorf("client %v: %d", b.tasks[i].client, got)
		}
	}
	if m, o := mine.take(), theirs.one(t); len(m) != 2 || o.Session != "theirs" || m[0].Session != "mine" {
		t.Errorf("%+v and %+v", m, o)
	}
}

// A query that meets a bug costs itself: those beside it are answered.
func TestBatchPanic(t *testing.T) {
	var log strings.Builder
	rec := &recorder{}
	s := &Server{Policy: compile(t, "", "*.test"), Events: rec, Pins: newPins(t, "198.18.0.0/24"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	s.Route = func(c netip.AddrPort) *Server {
		if c.Port() == 666 {
			panic("the route has a bug")
		}
		return s
	}
	b := filled("192.0.2.1:5", wire(t, nil), wire(t, nil))
	b.tasks[1].client = netip.MustParseAddrPort("192.0.2.1:666")
	s.answerManyRecovering(b, 2)
	for i, want := range []int{dns.RcodeSuccess, dns.RcodeServerFailure} {
		task := &b.tasks[i]
		if !task.later {
			t.Fatalf("query %d is not answered by itself", i)
		}
		var m dns.Msg
		if err := m.Unpack(s.answerRecovering(t.Context(), task.wire, task.client, false)); err != nil || m.Rcode != want {
			t.Errorf("%v: %v, %v", task.client, &m, err)
		}
	}
	if e := rec.take(); len(e) != 2 || e[1].Reason != policy.ReasonInternal.String() {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(log.String(), "the route has a bug") {
		t.Error("the log lacks the bug")
	}
}

// Nothing is allocated for a question about a name that was asked for lately.
func TestBatchAllocatesNothing(t *testing.T) {
	s := &Server{Policy: compile(t, "", "*.test"), Events: eventtest.Discard{}, Pins: newPins(t, "198.18.0.0/24")}
	var all [][]byte
	for i := range 64 {
		all = append(all, wire(t, func(m *dns.Msg) {
			m.Question[0].Name = []string{"Allowed%d.test.", "denied%d.example."}[i%2]
			m.Question[0].Name = fmt.Sprintf(m.Question[0].Name, i)
			m.SetEdns0(1232, false)
		}))
	}
	b := filled("192.0.2.1:5", all...)
	s.answerNow(b, 64)
	if n := testing.AllocsPerRun(100, func() { s.answerNow(b, 64) }); n > 2 {
		t.Errorf("%v allocations for 64 questions", n)
	}
}

// One at a time, as on other systems, serves as well.
func TestOneByOne(t *testing.T) {
	rec := &recorder{}
	s := &Server{Policy: compile(t, "", "allowed.test"), Events: rec, Pins: newPins(t, "198.18.0.0/24")}
	pc, _ := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, struct{ net.PacketConn }{pc}, nil) }()
	g := &gate{addr: pc.LocalAddr().String()}
	if m := g.query(t, "allowed.test", dns.TypeA); len(m.Answer) != 1 {
		t.Error(m)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

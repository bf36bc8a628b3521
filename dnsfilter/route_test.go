package dnsfilter

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// One door may serve several policies: each client is answered, and recorded, by
// its own Server; a client that is nobody's is refused.
func TestRoute(t *testing.T) {
	var aEvents, bEvents, frontEvents recorder
	a := &Server{Policy: compile(t, "", "a.example"), Events: &aEvents, Pins: newPins(t, "198.18.0.0/24")}
	b := &Server{Policy: compile(t, "", "b.example"), Events: &bEvents, Pins: newPins(t, "198.18.0.0/24")}
	front := &Server{Policy: compile(t, ""), Events: &frontEvents}
	to := map[string]*Server{"192.0.2.1": a, "192.0.2.2": b}
	front.Route = func(c netip.AddrPort) *Server { return to[c.Addr().String()] }
	for _, tt := range []struct {
		client, name string
		want         int
	}{
		{"192.0.2.1:5", "a.example.", dns.RcodeSuccess},
		{"192.0.2.1:5", "b.example.", dns.RcodeNameError},
		{"192.0.2.2:5", "b.example.", dns.RcodeSuccess},
		{"[::ffff:192.0.2.2]:5", "a.example.", dns.RcodeNameError},
		{"192.0.2.3:5", "a.example.", dns.RcodeRefused},
		{"", "a.example.", dns.RcodeRefused},
	} {
		q := new(dns.Msg)
		q.SetQuestion(tt.name, dns.TypeA)
		wire, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var from net.Addr // that of the socket
		if ap, err := netip.ParseAddrPort(tt.client); err == nil {
			from = net.UDPAddrFromAddrPort(ap)
		}
		m := new(dns.Msg)
		if err := m.Unpack(front.answer(t.Context(), wire, addrPort(from), false)); err != nil {
			t.Fatal(err)
		}
		if m.Rcode != tt.want {
			t.Errorf("%s asks for %s: %s", tt.client, tt.name, dns.RcodeToString[m.Rcode])
		}
	}
	refused := frontEvents.take()
	if a, b, f := len(aEvents.take()), len(bEvents.take()), len(refused); a != 2 || b != 2 || f != 2 {
		t.Fatalf("%d, %d and %d events", a, b, f)
	}
	if got := refused[0].Reason; got != "not_authenticated" {
		t.Errorf("a client of nobody's: %s", got)
	}
}

// Other servers are asked from now on, and what the old ones said is forgotten.
func TestSetUpstreams(t *testing.T) {
	r, asked := faked(t, func(_ context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
		if u.String() == "udp://192.0.2.1:53" {
			return fromZone("a.example. 300 IN A 198.51.100.1")(t.Context(), u, q)
		}
		return fromZone("a.example. 300 IN A 198.51.100.2")(t.Context(), u, q)
	}, "192.0.2.1")
	for _, tt := range []struct{ upstream, want string }{{"192.0.2.1", "198.51.100.1"}, {"192.0.2.2", "198.51.100.2"}} {
		u, err := ParseUpstream(tt.upstream)
		if err != nil {
			t.Fatal(err)
		}
		r.SetUpstreams([]Upstream{u})
		if got, err := lookup(t, r, "a.example"); err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %v, %v", tt.upstream, got, err)
		}
		before := asked.Load()
		r.SetUpstreams([]Upstream{u}) // the same: the cache stays
		if _, err := lookup(t, r, "a.example"); err != nil || asked.Load() != before {
			t.Errorf("%s was asked again: %v", tt.upstream, err)
		}
	}
}

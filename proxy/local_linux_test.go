package proxy

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"egressd/policy"
	"egressd/test/iproute"
)

// Threat: an allowed name resolves to the public address of the machine that dials,
// and so a server there is reached from within, past the machine's firewall.
func TestOwnAddresses(t *testing.T) {
	inNamespace(t, func() {
		if err := iproute.AddAddr("lo", public.String()+"/32"); err != nil {
			t.Error(err)
			return
		}
		ln, err := net.Listen("tcp", netip.AddrPortFrom(public, 443).String())
		if err != nil {
			t.Error(err)
			return
		}
		defer ln.Close()
		for _, tt := range []struct {
			name  string
			rules []string
			want  policy.Reason
		}{
			{"a name", []string{"a.example"}, policy.ReasonIPProhibited},
			{"a name, and a range", []string{"a.example", "93.184.0.0/16:443"}, policy.ReasonIPProhibited},
			{"a name, and the address with another port", []string{"a.example", public.String() + ":8443"}, policy.ReasonIPProhibited},
			{"a name, and the address", []string{"a.example", public.String() + ":443"}, policy.ReasonAllowed},
		} {
			g := newGate(t, tt.rules...)
			g.dialFunc = nil // the real thing
			g.answer("a.example", public)
			r := policy.Request{Host: hostOf(t, "a.example"), Port: 443}
			_, d := g.find(r)
			if d.Reason != tt.want {
				t.Errorf("%s, when it is looked up: %s", tt.name, d.Reason)
			}
			got := g.take(r, []netip.Addr{public})
			if got.Decision.Reason != tt.want || (got.Conn != nil) != (tt.want == policy.ReasonAllowed) {
				t.Errorf("%s, when it is dialled: %s, %v", tt.name, got.Decision.Reason, got.Conn)
			}
			if got.Conn != nil {
				_ = got.Conn.Close()
			}
		}
	})
}

// Where every address is local by a route, those of interfaces are refused.
func TestOwnAddressesAmongLocalOnes(t *testing.T) {
	inNamespace(t, func() {
		other := mustAddr("93.184.216.99")
		if err := errors.Join(iproute.AddAddr("lo", public.String()+"/32"), iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add()); err != nil {
			t.Error(err)
			return
		}
		for addr, want := range map[netip.Addr]policy.Reason{public: policy.ReasonIPProhibited, other: policy.ReasonAllowed} {
			g := newGate(t, "a.example")
			g.answer("a.example", addr)
			_, d := g.find(policy.Request{Host: hostOf(t, "a.example"), Port: 443})
			if d.Reason != want {
				t.Errorf("%s: %s", addr, d.Reason)
			}
		}
	})
}

package policy

import (
	"net/netip"
	"testing"
)

// localhost is the client's own loopback: a DNS question for it is allowed by
// every policy that does not deny it, and nothing else is.
func TestLocalhost(t *testing.T) {
	compiled := func(text string) *Policy {
		d, err := ParseFile("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	empty := compiled("allow: []\n")
	loopback := netip.IPv6Loopback()
	for _, tt := range []struct {
		name string
		p    *Policy
		r    Request
		want Reason
	}{
		{"a question", empty, Request{Host: host(t, "localhost")}, ReasonAllowed},
		{"below it", empty, Request{Host: host(t, "a.localhost")}, ReasonAllowed},
		{"another name", empty, Request{Host: host(t, "notlocalhost")}, ReasonHostNotListed},
		{"a connection", empty, Request{Host: host(t, "localhost"), Port: 80}, ReasonHostNotListed},
		{"an address", empty, Request{Host: host(t, "localhost"), Addr: loopback}, ReasonHostNotListed},
		{"no policy", nil, Request{Host: host(t, "localhost")}, ReasonNoPolicy},
		{"zero policy", new(Policy), Request{Host: host(t, "localhost")}, ReasonNoPolicy},
		{"denied", compiled("deny:\n  - localhost\n"), Request{Host: host(t, "localhost")}, ReasonDeniedByRule},
		{"denied below", compiled("deny:\n  - '*.localhost'\n"), Request{Host: host(t, "a.localhost")}, ReasonDeniedByRule},
		{"one port denied", compiled("deny:\n  - localhost:22\n"), Request{Host: host(t, "localhost")}, ReasonAllowed},
		{"allowed by rule", compiled("allow:\n  - localhost:22\n"), Request{Host: host(t, "localhost")}, ReasonAllowed},
		{"its own entry", compiled("hosts:\n  localhost: 192.0.2.1\n"), Request{Host: host(t, "localhost")}, ReasonHostNotListed},
		{"below a ceiling", empty.Under(empty), Request{Host: host(t, "localhost")}, ReasonAllowed},
		{"denied by the ceiling", empty.Under(compiled("deny:\n  - localhost\n")), Request{Host: host(t, "localhost")}, ReasonCeiling},
	} {
		d := tt.p.Decide(tt.r)
		if d.Reason != tt.want || d.Allowed() != (tt.want == ReasonAllowed) {
			t.Errorf("%s: %+v, want %s", tt.name, d, tt.want)
		}
	}
}

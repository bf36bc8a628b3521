package firewall

import (
	"encoding/json"
	"net/netip"
	"testing"

	"egressd/policy"
)

// What a policy lets through, asked of the compiled one and of admits, as the
// engine asks them.
func TestTranslation(t *testing.T) {
	s := &Config{Hosts: map[string][]netip.Addr{
		"in.test": {netip.MustParseAddr("10.1.2.3")}, "out.test": {netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("11.1.2.3")},
	}}
	for _, tt := range []struct {
		policy, host string
		port         uint16
		want         bool
	}{
		{`{"mode":"deny-all"}`, "a.example", 443, false},
		{`{"mode":"allow-all"}`, "a.example", 443, true},
		{`{"mode":"allow-all"}`, "a.example", 80, true},
		{`{"mode":"allow-all"}`, "93.184.216.34", 22, true},
		{`{"mode":"allow-all"}`, "10.0.0.1", 443, false},
		{`{"allow":["a.example"]}`, "a.example", 443, true},
		{`{"allow":["a.example"]}`, "a.example", 8443, true},
		{`{"allow":["a.example"]}`, "a.example", 80, false}, // nothing in plain HTTP proves the name
		{`{"allow":["a.example"]}`, "b.example", 443, false},
		{`{"allow":["a.example"]}`, "b.a.example", 443, false},
		{`{"allow":["*.a.example"]}`, "c.b.a.example", 443, true},
		{`{"allow":["*.a.example"]}`, "a.example", 443, false},
		{`{"allow":["*.com"]}`, "a.com", 443, true},
		{`{"allow":["*.com"]}`, "a.com", 80, false},
		{`{"allow":["*.com"]}`, "a.org", 443, false},
		{`{"allow":["www.*.com"]}`, "www.a.com", 443, true},
		{`{"allow":["www.*.com"]}`, "www.a.b.com", 443, false},
		{`{"allow":["A.Example"]}`, "a.example", 443, true},
		{`{"subnets":{"allow":["10.0.0.0/8"]}}`, "10.1.2.3", 22, true},
		{`{"subnets":{"allow":["10.0.0.9/8"]}}`, "10.1.2.3", 22, true},
		{`{"subnets":{"allow":["10.0.0.0/8"]}}`, "11.1.2.3", 22, false},
		{`{"subnets":{"allow":["10.0.0.0/8"]}}`, "in.test", 443, true},
		{`{"subnets":{"allow":["10.0.0.0/8"]}}`, "out.test", 443, false},
		{`{"subnets":{"allow":["10.0.0.0/8"],"deny":["10.1.0.0/16"]}}`, "10.1.2.3", 22, false},
		{`{"subnets":{"allow":["2001:db8::/32"]}}`, "2001:db8::1", 443, true},
		{`{"allow":["*"],"subnets":{"deny":["93.184.216.0/24"]}}`, "93.184.216.34", 443, false},
		{`{"allow":{"a.example":[{"transform":[{"headers":{"x":"y"}}]}]}}`, "a.example", 443, true},
	} {
		p, err := Parse(json.RawMessage(tt.policy))
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := s.compile(p)
		if err != nil {
			t.Fatal(err)
		}
		host, err := policy.ParseHost(tt.host)
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Request{Host: host, Port: tt.port}
		d := compiled.Decide(r)
		asked := d.Reason == policy.ReasonHostNotListed || d.Reason == policy.ReasonPortNotListed
		if got := d.Allowed() || asked && p.asks() && s.admits(t.Context(), p, r); got != tt.want {
			t.Errorf("%s: %s:%d: %v (%s)", tt.policy, tt.host, tt.port, got, d.Reason)
		}
	}
}

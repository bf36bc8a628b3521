package dnsfilter

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"egressd/policy"
)

// neverAsked reports whether h lies below a domain that no resolver may be
// asked about. RFC 6761 section 6.4 (invalid), RFC 7686 section 2 (onion).
func neverAsked(h policy.Host) bool {
	top := h.Name()[strings.LastIndexByte(h.Name(), '.')+1:]
	return top == "invalid" || top == "onion"
}

func loopback() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

func oneAddr(a netip.Addr) []netip.Addr { return []netip.Addr{a} }

// reverse answers PTR for an address that we handed out, while its name is
// still allowed. The zero Decision means that this is another kind of question.
func (s *Server) reverse(p *policy.Policy, q *query, h policy.Host) (outcome, policy.Decision) {
	if q.qtype != dns.TypePTR || s.Pins == nil {
		return outcome{}, policy.Decision{}
	}
	a, ok := arpaAddr(h.Name())
	if !ok {
		return outcome{}, policy.Decision{}
	}
	name, known, _ := s.Pins.NameOf(a)
	if !known {
		return outcome{}, policy.Decision{}
	}
	d := p.Decide(policy.Request{Host: name})
	return outcome{ptr: name.Name(), ttl: syntheticTTL}, d
}

// arpaAddr reads d.c.b.a.in-addr.arpa (RFC 1035 section 3.5).
func arpaAddr(name string) (netip.Addr, bool) {
	rest, ok := strings.CutSuffix(name, ".in-addr.arpa")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 {
		return netip.Addr{}, false
	}
	var b [4]byte
	for i, s := range parts {
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil || strconv.FormatUint(n, 10) != s {
			return netip.Addr{}, false
		}
		b[3-i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}

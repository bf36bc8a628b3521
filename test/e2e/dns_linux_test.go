package e2e

import (
	"encoding/hex"
	"hash/fnv"
	"net/netip"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// dnsServer answers any name, so that a question that gets out also gets an
// answer, and remembers every question.
//
// Names steer the answer. "<hex>.ip.example.net" has the address that the hex
// digits spell (more than one, separated by "-"); "flip.<...>" answers a public
// address first and 127.0.0.1 from then on; "nx." does not exist; "alias." is
// a CNAME; everything else has a public address made from its name.
type dnsServer struct {
	mu      sync.Mutex
	queries []string
	flips   map[string]int
}

func newDNSServer() *dnsServer { return &dnsServer{flips: map[string]int{}} }

// asked reports the questions since mark (an earlier count), as "name TYPE".
func (s *dnsServer) asked(mark int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.queries[mark:]...)
}

func (s *dnsServer) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queries)
}

func (s *dnsServer) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(r)
	for _, q := range r.Question {
		name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
		s.mu.Lock()
		s.queries = append(s.queries, name+" "+dns.TypeToString[q.Qtype])
		s.mu.Unlock()
		switch {
		case strings.HasPrefix(name, "mute."):
			return // never answered
		case strings.HasPrefix(name, "nx."):
			m.Rcode = dns.RcodeNameError
		case strings.HasPrefix(name, "servfail."):
			m.Rcode = dns.RcodeServerFailure
		default:
			s.answer(m, q, name)
		}
	}
	_ = w.WriteMsg(m) // the client may be gone
}

func (s *dnsServer) answer(m *dns.Msg, q dns.Question, name string) {
	owner := q.Name
	if strings.HasPrefix(name, "alias.") {
		target := "target-of-" + strings.ReplaceAll(name, ".", "-") + ".example.org."
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 60}, Target: target})
		owner = target
	}
	for _, a := range s.addresses(name) {
		switch {
		case q.Qtype == dns.TypeA && a.Is4():
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: s.ttl(name)}, A: a.AsSlice()})
		case q.Qtype == dns.TypeAAAA && !a.Is4():
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: s.ttl(name)}, AAAA: a.AsSlice()})
		}
	}
}

func (s *dnsServer) ttl(name string) uint32 {
	if strings.HasPrefix(name, "flip.") {
		return 0
	}
	return 60
}

func (s *dnsServer) addresses(name string) []netip.Addr {
	if strings.HasPrefix(name, "flip.") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flips[name]++
		if s.flips[name] > 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		return []netip.Addr{publicAddr(name)}
	}
	if spelled, ok := strings.CutSuffix(name, ".ip.example.net"); ok {
		var all []netip.Addr
		for part := range strings.SplitSeq(spelled[strings.LastIndexByte(spelled, '.')+1:], "-") {
			raw, err := hex.DecodeString(part)
			if a, ok := netip.AddrFromSlice(raw); err == nil && ok {
				all = append(all, a)
			}
		}
		return all
	}
	return []netip.Addr{publicAddr(name)}
}

// publicAddr is the public-looking address that the world gives a name.
func publicAddr(name string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	sum := h.Sum32()
	return netip.AddrFrom4([4]byte{11, byte(sum>>16) | 1, byte(sum >> 8), byte(sum) | 1})
}

// ipName is the name that the world resolves to these addresses.
func ipName(addrs ...string) string {
	var parts []string
	for _, a := range addrs {
		parts = append(parts, hex.EncodeToString(netip.MustParseAddr(a).AsSlice()))
	}
	return strings.Join(parts, "-") + ".ip.example.net"
}

// hexName is the name for one address given as bytes.
func hexName(b []byte) string { return hex.EncodeToString(b) + ".ip.example.net" }

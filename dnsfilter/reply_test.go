package dnsfilter

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"egressd/policy"
)

// packed is what package dns makes of o as the answer to q: the oracle of append.
func (q *query) packed(t testing.TB, o *outcome, tcp bool) []byte {
	t.Helper()
	m := dns.Msg{}
	m.Id, m.Opcode, m.Rcode = q.id, q.opcode, o.rcode
	m.Response, m.RecursionAvailable = true, true
	m.RecursionDesired, m.CheckingDisabled = q.rd, q.cd
	if q.name != nil {
		m.Question = []dns.Question{{Name: q.spelling(), Qtype: q.qtype, Qclass: q.qclass}}
	}
	m.Answer = q.records(o)
	if len(m.Answer) == 0 && (o.rcode == dns.RcodeSuccess || o.rcode == dns.RcodeNameError) {
		m.Ns = []dns.RR{&dns.SOA{
			Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: deniedTTL},
			Ns:  "egressd.invalid.", Mbox: "nobody.invalid.",
			Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: deniedTTL,
		}}
	}
	if q.edns {
		opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		opt.SetUDPSize(ourUDPBytes)
		if q.do {
			opt.SetDo()
		}
		if o.ede != 0 {
			text := strings.Join(o.edeText[:], "")
			opt.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: o.ede, ExtraText: clip(text, maxEDEText)}}
		}
		m.Extra = []dns.RR{opt}
	}
	size := q.udpSize
	if tcp {
		size = dns.MaxMsgSize
	}
	m.Truncate(size)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// records is the answer section.
func (q *query) records(o *outcome) (rrs []dns.RR) {
	head := func(kind uint16, ttl uint32) dns.RR_Header {
		return dns.RR_Header{Name: q.spelling(), Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
	}
	switch {
	case o.minimal:
		return []dns.RR{&dns.HINFO{Hdr: head(dns.TypeHINFO, syntheticTTL), Cpu: "RFC8482"}}
	case o.ptr != "":
		return []dns.RR{&dns.PTR{Hdr: head(dns.TypePTR, o.ttl), Ptr: o.ptr + "."}}
	}
	for _, a := range append([]netip.Addr{o.own}, o.addrs...) {
		switch {
		case q.qtype == dns.TypeA && a.Unmap().Is4():
			rrs = append(rrs, &dns.A{Hdr: head(dns.TypeA, o.ttl), A: a.Unmap().AsSlice()})
		case q.qtype == dns.TypeAAAA && a.Is6() && !a.Is4In6():
			rrs = append(rrs, &dns.AAAA{Hdr: head(dns.TypeAAAA, o.ttl), AAAA: a.WithZone("").AsSlice()})
		}
	}
	return rrs
}

// plain spells out what a message says, header included: compression and nothing else
// is undone.
func plain(t testing.TB, wire []byte) []byte {
	t.Helper()
	var m dns.Msg
	if err := m.Unpack(wire); err != nil {
		t.Fatalf("%x: %v", wire, err)
	}
	m.Compress = false
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// outcomes are one of each kind, with n addresses where there are any.
func outcomes(n int) []outcome {
	var addrs []netip.Addr
	for i := range n {
		addrs = append(addrs, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}),
			netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}), netip.AddrFrom16([16]byte{10: 0xff, 0xff, 12: 192, 0, 2, byte(i)}))
	}
	long := strings.Repeat("ä", 100)
	return []outcome{
		{addrs: addrs, ttl: 1<<32 - 1},
		{own: netip.MustParseAddr("198.18.0.1"), ttl: syntheticTTL},
		{addrs: loopback(), ttl: 60},
		{minimal: true},
		{ptr: "a.b-c.test", ttl: syntheticTTL},
		negative(dns.RcodeSuccess), negative(dns.RcodeNameError), negative(dns.RcodeRefused),
		negative(dns.RcodeServerFailure), negative(dns.RcodeBadVers), negative(dns.RcodeFormatError),
		{rcode: dns.RcodeNameError, ede: dns.ExtendedErrorCodeBlocked, edeText: [5]string{"blocked: ", "why", "; allow ", "it"}},
		{rcode: dns.RcodeNameError, ede: dns.ExtendedErrorCodeBlocked, edeText: [5]string{"x", long, long, "it"}},
		{rcode: dns.RcodeServerFailure, ede: dns.ExtendedErrorCodeNetworkError, edeText: [5]string{long}},
	}
}

// sameReply holds every reply to in against what package dns would send.
func sameReply(t testing.TB, in []byte, n int) {
	t.Helper()
	q, _, ok := parseQuery(in)
	if !ok {
		return
	}
	for _, o := range outcomes(n) {
		if o.rcode > 0xf && !q.edns || o.ptr != "" && len(q.name) > 100 {
			continue // neither happens: BADVERS answers EDNS, PTR a short name
		}
		if len(q.name) <= 1 && (o.ptr != "" || o.minimal || o.ttl > 0) {
			continue // a record answers a name, and the root is none
		}
		for _, tcp := range []bool{false, true} {
			got, want := q.append(nil, &o, tcp), q.packed(t, &o, tcp)
			if !bytes.Equal(plain(t, got), plain(t, want)) {
				t.Fatalf("%x, %+v, tcp %v:\n%x, want\n%x", in, o, tcp, got, want)
			}
			if !tcp && len(got) > q.udpSize {
				t.Fatalf("%x: %d bytes, the client takes %d", in, len(got), q.udpSize)
			}
		}
	}
}

// Replies say what package dns would say, whatever was asked, up to records that are
// left out because they do not fit.
func TestReplyAgreesWithLibrary(t *testing.T) {
	for n := range 70 {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeANY, dns.TypeTXT} {
			for _, size := range []uint16{0, 512, 700, 1232, 4096} {
				sameReply(t, wire(t, func(m *dns.Msg) {
					m.Question[0].Name, m.Question[0].Qtype = "AlloWed.test.egressd.invalid.", qtype
					m.RecursionDesired, m.CheckingDisabled = n%2 == 0, n%3 == 0
					if size > 0 {
						m.SetEdns0(size, n%5 == 0)
					}
				}), n)
			}
		}
	}
	sameReply(t, longName(t, 255), 70)
	sameReply(t, wire(t, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), 1)
	sameReply(t, wire(t, func(m *dns.Msg) { m.Question[0].Name = "." }), 1)
}

// FuzzReply does so for any message, and holds what is judged against ParseHost.
func FuzzReply(f *testing.F) {
	f.Add(wire(f, nil), 1)
	f.Add(wire(f, func(m *dns.Msg) { m.SetEdns0(4096, true); m.Question[0].Qtype = dns.TypeAAAA }), 64)
	f.Add(wire(f, func(m *dns.Msg) { m.Question[0].Name = "XN--Bcher-KVA.tEst." }), 3)
	f.Add(longName(f, 255), 0)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		sameReply(t, in, min(max(n, 0), maxAddrs))
		q, _, ok := parseQuery(in)
		if !ok || q.name == nil {
			return
		}
		want, err := policy.ParseHost(strings.TrimSuffix(q.spelling(), "."))
		named := err == nil && want.Name() != ""
		var known hosts
		for range 3 { // from nothing, and remembered
			if got, ok := q.host(&known, policy.Host{}); ok != named || ok && got != want {
				t.Fatalf("%q: %v %v, want %v %v", q.spelling(), got, ok, want, named)
			}
		}
	})
}

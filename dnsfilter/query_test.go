package dnsfilter

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"egressd/policy"
)

// wire packs a query for allowed.test A after change.
func wire(t testing.TB, change func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion("allowed.test.", dns.TypeA)
	m.Id = 0x1234
	if change != nil {
		change(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOddMessages(t *testing.T) {
	good := wire(t, nil)
	poke := func(at int, b ...byte) []byte {
		w := bytes.Clone(good)
		copy(w[at:], b)
		return w
	}
	rr, _ := dns.NewRR("allowed.test. 60 IN A 192.0.2.1")
	rootRR := &dns.NULL{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeNULL, Class: dns.ClassINET}, Data: "x"}
	tests := []struct {
		name string
		in   []byte
		want int // RCODE; -1: no answer
	}{
		{"an answer", poke(2, 0x81), -1},
		{"eleven bytes", good[:11], -1},
		{"header alone", good[:12], dns.RcodeFormatError},
		{"question cut", good[:len(good)-1], dns.RcodeFormatError},
		{"a byte after the end", append(bytes.Clone(good), 0), dns.RcodeFormatError},
		{"truncated query", poke(2, 0x03), dns.RcodeFormatError},
		{"opcode NOTIFY", poke(2, 0x21), dns.RcodeNotImplemented},
		{"opcode UPDATE", poke(2, 0x29), dns.RcodeNotImplemented},
		{"opcode 15", poke(2, 0x79), dns.RcodeNotImplemented},
		{"no question", poke(5, 0), dns.RcodeFormatError},
		{"two questions", wire(t, func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		{"65535 questions", poke(4, 0xff, 0xff), dns.RcodeFormatError},
		{"an answer record", wire(t, func(m *dns.Msg) { m.Answer = []dns.RR{rr} }), dns.RcodeFormatError},
		{"an authority record", wire(t, func(m *dns.Msg) { m.Ns = []dns.RR{rr} }), dns.RcodeFormatError},
		{"an additional record", wire(t, func(m *dns.Msg) { m.Extra = []dns.RR{rr} }), dns.RcodeFormatError},
		{"two OPT", wire(t, func(m *dns.Msg) { m.SetEdns0(1232, false); m.Extra = append(m.Extra, m.Extra[0]) }), dns.RcodeFormatError},
		{"OPT promised, absent", poke(11, 1), dns.RcodeFormatError},
		{"two additional promised, absent", poke(11, 2), dns.RcodeFormatError},
		{"answer promised, absent", poke(7, 1), dns.RcodeFormatError},
		{"authority promised, absent", poke(9, 1), dns.RcodeFormatError},
		{"an additional record of the root", wire(t, func(m *dns.Msg) { m.Extra = []dns.RR{rootRR} }), dns.RcodeFormatError},
		{"EDNS version 1", wire(t, func(m *dns.Msg) { m.SetEdns0(1232, false); m.IsEdns0().SetVersion(1) }), dns.RcodeBadVers},
		{"class CH", wire(t, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
		{"class ANY", wire(t, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }), dns.RcodeRefused},
		{"type 0", wire(t, func(m *dns.Msg) { m.Question[0].Qtype = 0 }), dns.RcodeFormatError},
		{"type OPT", wire(t, func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeOPT }), dns.RcodeFormatError},
		{"pointer to itself", poke(12, 0xc0, 12), dns.RcodeFormatError},
		{"pointer into the header", poke(20, 0xc0, 0), dns.RcodeFormatError},
		{"label of 64", poke(12, 64), dns.RcodeFormatError},
		{"extended label type", poke(12, 0x41), dns.RcodeFormatError},
		{"label of 64, all there", longLabel(64), dns.RcodeFormatError},
		{"label past the end", poke(12, 63), dns.RcodeFormatError},
		{"name of 256", longName(t, 256), dns.RcodeFormatError},
		{"name of 255", longName(t, 255), dns.RcodeNameError},
		{"AD and Z bits", poke(3, 0x70), dns.RcodeSuccess},
		{"good", good, dns.RcodeSuccess},
	}
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := g.raw(t, tt.in, tt.want >= 0)
			e := g.events.one(t)
			if tt.want < 0 {
				if out != nil {
					t.Fatalf("answered %x", out)
				}
				return
			}
			var m dns.Msg
			if err := m.Unpack(out); err != nil {
				t.Fatalf("answer %x: %v", out, err)
			}
			if m.Rcode != tt.want || m.Id != 0x1234 || !m.Response || m.Opcode != int(tt.in[2]>>3&0xf) {
				t.Errorf("answer %v, want %s", &m, dns.RcodeToString[tt.want])
			}
			if blocked := e.Decision == "blocked"; blocked != (tt.want != dns.RcodeSuccess) {
				t.Errorf("event %+v", e)
			}
			if tt.want != dns.RcodeSuccess && tt.want != dns.RcodeNameError && e.Reason != policy.ReasonMalformed.String() {
				t.Errorf("reason %s", e.Reason)
			}
		})
	}
}

// longName is a query whose name takes n bytes on the wire.
func longName(t testing.TB, n int) []byte {
	t.Helper()
	w := binary.BigEndian.AppendUint16(nil, 0x1234)
	w = append(w, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	for n--; n > 0; { // the root label
		size := min(n-1, 63)
		if n-1-size == 1 {
			size-- // a label of 0 bytes would end the name
		}
		w = append(append(w, byte(size)), strings.Repeat("a", size)...)
		n -= size + 1
	}
	return append(w, 0, 0, 1, 0, 1)
}

// longLabel is a query for one label of n bytes.
func longLabel(n int) []byte {
	w := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, byte(n)}
	w = append(w, strings.Repeat("a", n)...)
	return append(w, 0, 0, 1, 0, 1)
}

func TestNothingOfTheClientIsReflected(t *testing.T) {
	g := start(t, &Server{Policy: compile(t, "", "allowed.test")})
	in := g.ask(t, "udp", func() *dns.Msg {
		m := new(dns.Msg)
		m.SetQuestion("allowed.test.", dns.TypeA)
		m.SetEdns0(65535, true)
		m.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"},
			&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("SECRET")},
			&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 32, Address: []byte{10, 1, 2, 3}},
		}
		return m
	}())
	opt := in.IsEdns0()
	if opt == nil || opt.UDPSize() != ourUDPBytes || len(opt.Option) != 0 || opt.Version() != 0 || !opt.Do() {
		t.Errorf("OPT %v, want ours: size %d, the DO bit, no options", opt, ourUDPBytes)
	}
	if in.AuthenticatedData || in.Zero {
		t.Error("AD or Z set")
	}
}

// FuzzAnswer throws bytes at the whole path from query to reply: it never
// panics, answers only what was asked, and an answer with an address means
// that the policy allows the very name the bytes spell.
func FuzzAnswer(f *testing.F) {
	f.Add(wire(f, nil))
	f.Add(wire(f, func(m *dns.Msg) { m.SetEdns0(4096, true) }))
	f.Add(wire(f, func(m *dns.Msg) { m.Question[0].Name = `a\.b.AlloweD.test.`; m.Question[0].Qtype = dns.TypeANY }))
	f.Add(longName(f, 255))
	f.Add(wire(f, func(m *dns.Msg) { m.Question[0].Name = "1.0.18.198.in-addr.arpa."; m.Question[0].Qtype = dns.TypePTR }))
	c := compile(f, "", "allowed.test", "*.wild.test", "!no.wild.test")
	pins, _ := NewPins(zeroPrefix)
	f.Fuzz(func(t *testing.T, in []byte) {
		rec := &recorder{}
		s := &Server{Policy: c, Pins: pins, Events: rec}
		out := s.answer(t.Context(), in, netip.AddrPort{}, false)
		e := rec.one(t)
		if out == nil {
			return
		}
		var m dns.Msg
		if err := m.Unpack(out); err != nil {
			t.Fatalf("our own answer %x: %v", out, err)
		}
		if len(out) > ourUDPBytes || !m.Response || !bytes.Equal(out[:2], in[:2]) {
			t.Fatalf("answer %v", &m)
		}
		if len(m.Question) == 1 && !bytes.Contains(in, out[12:12+len(packedName(t, m.Question[0].Name))]) {
			t.Fatalf("question not repeated as asked: %x in %x", out, in)
		}
		for _, a := range addrsOf(&m) {
			if a == "127.0.0.1" || a == "::1" {
				continue
			}
			h := host(t, strings.TrimSuffix(m.Question[0].Name, "."))
			if !c.Load().Decide(policy.Request{Host: h}).Allowed() || e.Decision != "allowed" {
				t.Fatalf("%q was answered with %s", m.Question[0].Name, a)
			}
		}
	})
}

func packedName(t testing.TB, name string) []byte {
	t.Helper()
	b := make([]byte, 512)
	n, err := dns.PackDomainName(name, b, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

package dnsfilter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// The question that is sent is the one that package dns makes.
func TestAppendQuestion(t *testing.T) {
	for _, name := range []string{"a.test", "x", "a-b_c.example.com", strings.Repeat("abcdefg.", 31) + "abc"} {
		for _, qtype := range types {
			m := question(host(t, name), qtype)
			m.Id = 0
			want, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if got := appendQuestion(nil, host(t, name), qtype); !bytes.Equal(got, want) {
				t.Errorf("%s %d:\n%x\n%x", name, qtype, got, want)
			}
		}
	}
}

// FuzzReadPlain: what is read without package dns is what that reads.
func FuzzReadPlain(f *testing.F) {
	name := "a.test"
	add := func(qtype uint16, change func(*dns.Msg), lines ...string) {
		m := zone(lines...)("udp", question(host(f, name), qtype))
		m.Compress = true
		m.SetEdns0(1232, false)
		if change != nil {
			change(m)
		}
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, qtype == dns.TypeAAAA)
	}
	add(dns.TypeA, nil, "a.test. 60 IN A 192.0.2.1", "a.test. 7 IN A 192.0.2.2")
	add(dns.TypeAAAA, nil, "a.test. 2147483648 IN AAAA ::ffff:10.0.0.1")
	add(dns.TypeAAAA, nil, "a.test. 60 IN A 192.0.2.1") // empty, with an SOA
	add(dns.TypeA, nil)                                 // NXDOMAIN, with an SOA
	add(dns.TypeA, func(m *dns.Msg) { m.Ns, m.Extra = nil, nil })
	add(dns.TypeA, func(m *dns.Msg) { m.Truncated = true }, "a.test. 60 IN A 192.0.2.1")
	add(dns.TypeA, func(m *dns.Msg) { m.Rcode = dns.RcodeServerFailure }, "a.test. 60 IN A 192.0.2.1")
	add(dns.TypeA, nil, "a.test. 60 IN CNAME b.test.", "b.test. 60 IN A 192.0.2.3")
	add(dns.TypeA, func(m *dns.Msg) { m.Answer[0].Header().Class = dns.ClassCHAOS }, "a.test. 60 IN A 192.0.2.1")
	f.Fuzz(func(t *testing.T, b []byte, six bool) {
		qtype := types[0]
		if six {
			qtype = types[1]
		}
		// line has seen to that much: it repeats the question.
		head := appendQuestion(nil, host(t, name), qtype)
		head = head[:len(head)-optBytes]
		if len(b) < len(head) {
			return
		}
		b = append(b[:headerBytes:headerBytes], append(head[headerBytes:], b[len(head):]...)...)
		b[2] = b[2]&^0x78 | 0x80
		binary.BigEndian.PutUint16(b[4:], 1)
		got, plain := readPlain(b, qtype)
		if !plain {
			return
		}
		a := reply{wire: b, spelled: true}
		q := question(host(t, name), qtype)
		m, whole, err := a.message(q)
		if err != nil || !whole {
			t.Fatalf("%x: package dns says %v, whole: %v", b, err, whole)
		}
		want, err := read(m, qtype)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%x: %+v, package dns %+v, %v", b, got, want, err)
		}
	})
}

// The usual replies need no more than that; the rest is left to package dns.
func TestReadPlain(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*dns.Msg)
		lines  []string
		plain  bool
	}{
		"addresses":      {nil, []string{"a.test. 60 IN A 192.0.2.1", "a.test. 60 IN A 192.0.2.2"}, true},
		"none":           {nil, []string{"a.test. 60 IN TXT x"}, true},
		"no such name":   {nil, nil, true},
		"an alias":       {nil, []string{"a.test. 60 IN CNAME b.test.", "b.test. 60 IN A 192.0.2.3"}, false},
		"cut":            {func(m *dns.Msg) { m.Truncated = true }, []string{"a.test. 60 IN A 192.0.2.1"}, false},
		"refused":        {func(m *dns.Msg) { m.Rcode = dns.RcodeRefused }, nil, false},
		"an old version": {func(m *dns.Msg) { m.Rcode = dns.RcodeBadVers }, nil, false},
		"another name":   {func(m *dns.Msg) { m.Answer[0].Header().Name = "b.test." }, []string{"a.test. 60 IN A 192.0.2.1"}, false},
		"its parent":     {func(m *dns.Msg) { m.Answer[0].Header().Name = "test." }, []string{"a.test. 60 IN A 192.0.2.1"}, false},
		"too many":       {func(m *dns.Msg) { m.Answer = manyTimes(m.Answer[0], maxAddrs+1) }, []string{"a.test. 60 IN A 192.0.2.1"}, false},
		"as many as may": {func(m *dns.Msg) { m.Answer = manyTimes(m.Answer[0], maxAddrs) }, []string{"a.test. 60 IN A 192.0.2.1"}, true},
	} {
		m := zone(tt.lines...)("udp", question(host(t, "a.test"), dns.TypeA))
		m.Compress = true
		m.SetEdns0(1232, false)
		if tt.change != nil {
			tt.change(m)
		}
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, plain := readPlain(b, dns.TypeA); plain != tt.plain {
			t.Errorf("%s: plain is %v", name, plain)
		}
		if tt.plain {
			for end := headerBytes; end < len(b); end++ {
				if end < 12+8+4 {
					continue // line has seen that the question is there
				}
				if rec, plain := readPlain(b[:end:end], dns.TypeA); plain {
					t.Fatalf("%s: of %d bytes, %d are read: %+v", name, len(b), end, rec)
				}
			}
			if _, plain := readPlain(append(b, 0), dns.TypeA); plain {
				t.Errorf("%s: a byte behind the end", name)
			}
		}
	}
}

func manyTimes(rr dns.RR, n int) (rrs []dns.RR) {
	for range n {
		rrs = append(rrs, rr)
	}
	return rrs
}

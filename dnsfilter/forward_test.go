package dnsfilter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"egressd/policy"
)

func TestForward(t *testing.T) {
	up := startUpstream(t, zone(
		"a.test. 40 IN A 192.0.2.1", "a.test. 40 IN AAAA 2606:4700::1", "a.test. 40 IN TXT secret",
		"pub.test. 40 IN A 1.1.1.1", "pub.test. 4000 IN AAAA 2606:4700::1",
		"rebind.test. 40 IN A 1.1.1.1", "rebind.test. 40 IN A 10.0.0.1",
		"six.test. 40 IN A 1.1.1.1", "six.test. 40 IN AAAA ::ffff:169.254.169.254",
		"txt.test. 40 IN TXT x",
		"denied.test. 40 IN A 1.1.1.1",
	))
	g := start(t, &Server{
		Policy: compile(t, "forward", "pub.test", "rebind.test", "six.test", "txt.test", "gone.test",
			"db.internal=10.0.0.5", "db.internal:5432"),
		Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}},
	})
	tests := []struct {
		name     string
		qtype    uint16
		rcode    int
		want     []string
		decision string
		reason   policy.Reason
		asks     bool // the upstream
	}{
		{"pub.test", dns.TypeTXT, dns.RcodeSuccess, nil, "allowed", policy.ReasonAllowed, false},
		{"pub.test", dns.TypeHTTPS, dns.RcodeSuccess, nil, "allowed", policy.ReasonAllowed, false},
		{"denied.test", dns.TypeA, dns.RcodeNameError, nil, "blocked", policy.ReasonHostNotListed, false},
		{"denied.test", dns.TypeTXT, dns.RcodeNameError, nil, "blocked", policy.ReasonHostNotListed, false},
		{"db.internal", dns.TypeA, dns.RcodeSuccess, []string{"10.0.0.5"}, "allowed", policy.ReasonAllowed, false},
		{"db.internal", dns.TypeAAAA, dns.RcodeSuccess, nil, "allowed", policy.ReasonAllowed, false},
		{"localhost", dns.TypeA, dns.RcodeSuccess, []string{"127.0.0.1"}, "allowed", policy.ReasonAllowed, false},
		{"PUB.test", dns.TypeA, dns.RcodeSuccess, []string{"1.1.1.1"}, "allowed", policy.ReasonAllowed, true},
		{"pub.test", dns.TypeAAAA, dns.RcodeSuccess, []string{"2606:4700::1"}, "allowed", policy.ReasonAllowed, false}, // cached
		{"rebind.test", dns.TypeA, dns.RcodeNameError, nil, "blocked", policy.ReasonIPProhibited, true},
		{"six.test", dns.TypeA, dns.RcodeNameError, nil, "blocked", policy.ReasonIPProhibited, true},
		{"txt.test", dns.TypeA, dns.RcodeSuccess, nil, "allowed", policy.ReasonNotFound, true},
		{"gone.test", dns.TypeA, dns.RcodeNameError, nil, "allowed", policy.ReasonNotFound, true},
	}
	for _, tt := range tests {
		t.Run(tt.name+"/"+dns.Type(tt.qtype).String(), func(t *testing.T) {
			before := up.count()
			m := g.query(t, tt.name, tt.qtype)
			if got := addrsOf(m); m.Rcode != tt.rcode || !slices.Equal(got, tt.want) {
				t.Errorf("answer %v, want %s %v", m, dns.RcodeToString[tt.rcode], tt.want)
			}
			if m.Question[0].Name != tt.name+"." {
				t.Errorf("question %q", m.Question[0].Name)
			}
			for _, rr := range m.Answer {
				if rr.Header().Name != tt.name+"." || rr.Header().Ttl == 0 || rr.Header().Ttl > 60 {
					t.Errorf("record %v", rr)
				}
			}
			if asked := up.count() != before; asked != tt.asks {
				t.Errorf("upstream asked: %v, want %v", asked, tt.asks)
			}
			code, _, ok := ede(m)
			if blocked := tt.decision == "blocked"; ok != blocked || ok && code != dns.ExtendedErrorCodeBlocked {
				t.Errorf("EDE %d (%v)", code, ok)
			}
			e := g.events.one(t)
			if refused := tt.reason == policy.ReasonIPProhibited; refused != (e.Addr == "10.0.0.1" || e.Addr == "::ffff:169.254.169.254") {
				t.Errorf("event names address %q", e.Addr)
			}
			if e.Decision != tt.decision || e.Reason != tt.reason.String() || e.RCode != dns.RcodeToString[tt.rcode] {
				t.Errorf("event %+v, want %s %s", e, tt.decision, tt.reason)
			}
		})
	}
	for _, q := range up.seen() {
		if typ := q.Question[0].Qtype; typ != dns.TypeA && typ != dns.TypeAAAA {
			t.Errorf("type %s left the machine", dns.Type(typ))
		}
	}
}

func TestForwardUpstreamFails(t *testing.T) {
	up := startUpstream(t, func(_ string, q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure) })
	g := start(t, &Server{Policy: compile(t, "forward", "a.test"), Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}})
	m := g.query(t, "a.test", dns.TypeA)
	if code, _, _ := ede(m); m.Rcode != dns.RcodeServerFailure || code != dns.ExtendedErrorCodeNetworkError {
		t.Errorf("answer %v", m)
	}
	if e := g.events.one(t); e.Decision != "allowed" || e.Reason != policy.ReasonDNSError.String() || e.RCode != "SERVFAIL" {
		t.Errorf("event %+v", e)
	}
	g = start(t, &Server{Policy: compile(t, "forward", "a.test")}) // no resolver at all
	if m := g.query(t, "a.test", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answer %v", m)
	}
}

func TestBigAnswersAreCut(t *testing.T) {
	var lines []string
	for i := range 64 {
		lines = append(lines, fmt.Sprintf("a.test. 40 IN A 1.1.1.%d", i+1), fmt.Sprintf("a.test. 40 IN AAAA 2606:4700::%d", i+1))
	}
	up := startUpstream(t, zone(lines...))
	g := start(t, &Server{Policy: compile(t, "forward", "a.test"), Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}})
	tests := []struct {
		network string
		size    uint16 // of OPT; 0: none
		limit   int
		cut     bool
	}{
		{"udp", 0, 512, true},
		{"udp", 100, 512, true},
		{"udp", 65535, ourUDPBytes, true},
		{"tcp", 0, 65535, false},
	}
	for _, tt := range tests {
		m := new(dns.Msg)
		m.SetQuestion("a.test.", dns.TypeAAAA)
		if tt.size > 0 {
			m.SetEdns0(tt.size, false)
		}
		in := g.ask(t, tt.network, m)
		in.Compress = true // as it was sent
		if in.Truncated != tt.cut || in.Len() > tt.limit || !tt.cut && len(in.Answer) != 64 {
			t.Errorf("%s, size %d: %d bytes, %d records, TC %v", tt.network, tt.size, in.Len(), len(in.Answer), in.Truncated)
		}
	}
}

func TestModeIsReadAtEveryQuery(t *testing.T) {
	up := startUpstream(t, zone("a.test. 40 IN A 1.1.1.1"))
	c := compile(t, "", "a.test")
	g := start(t, &Server{Policy: c, Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}})
	if got := addrsOf(g.query(t, "a.test", dns.TypeA)); len(got) != 1 || !strings.HasPrefix(got[0], "198.18.") || up.count() != 0 {
		t.Errorf("synthetic: %v", got)
	}
	c.Store(compile(t, "forward", "a.test").Load())
	if got := addrsOf(g.query(t, "a.test", dns.TypeA)); !slices.Equal(got, []string{"1.1.1.1"}) {
		t.Errorf("forward: %v", got)
	}
}

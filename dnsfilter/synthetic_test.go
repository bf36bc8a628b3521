package dnsfilter

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"egressd/policy"
)

// spied is a Server in synthetic mode whose resolver counts what leaves: nothing may.
func spied(t *testing.T, c *policy.Current, change ...func(*Server)) (*gate, *upstream) {
	t.Helper()
	up := startUpstream(t, zone("allowed.test. 60 IN A 192.0.2.1"))
	s := &Server{Policy: c, Resolver: &Resolver{Upstreams: []Upstream{up.Upstream}}, Session: "s1", Isolation: "netns"}
	for _, f := range change {
		f(s)
	}
	g := start(t, s)
	t.Cleanup(func() {
		if n := up.count(); n != 0 {
			t.Errorf("%d queries left the machine in synthetic mode: %v", n, up.seen())
		}
	})
	return g, up
}

func TestSynthetic(t *testing.T) {
	g, _ := spied(t, compile(t, "", "allowed.test", "*.wild.test", "!no.wild.test", "db.test:5432",
		"host.internal=127.0.0.1", "host.internal:8080"))
	const pin = "pin" // any synthetic address
	tests := []struct {
		name     string
		qtype    uint16
		rcode    int
		want     string // "" empty, pin, or the address
		decision string
		reason   policy.Reason
	}{
		{"allowed.test", dns.TypeA, dns.RcodeSuccess, pin, "allowed", policy.ReasonAllowed},
		{"AlLoWeD.tEsT", dns.TypeA, dns.RcodeSuccess, pin, "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeAAAA, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeHTTPS, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeSVCB, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeTXT, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeNULL, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeMX, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", dns.TypeCNAME, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"allowed.test", 65399, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		{"a.b.wild.test", dns.TypeA, dns.RcodeSuccess, pin, "allowed", policy.ReasonAllowed},
		{"wild.test", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		{"no.wild.test", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonDeniedByRule},
		{"no.wild.test", dns.TypeHTTPS, dns.RcodeNameError, "", "blocked", policy.ReasonDeniedByRule},
		// any port of the name is enough for the look-up; the connection is judged by port
		{"db.test", dns.TypeA, dns.RcodeSuccess, pin, "allowed", policy.ReasonAllowed},
		{"host.internal", dns.TypeA, dns.RcodeSuccess, pin, "allowed", policy.ReasonAllowed},
		{"denied.test", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		{"denied.test", dns.TypeTXT, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		// the search list of resolv.conf
		{"allowed.test.corp.example", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		// data in labels of a name nobody allowed
		{strings.Repeat("deadbeef", 7) + ".exfil.test", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		{"192.0.2.1", dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{"1.2.0.192.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, "", "blocked", policy.ReasonHostNotListed},
		{"localhost", dns.TypeA, dns.RcodeSuccess, "127.0.0.1", "allowed", policy.ReasonAllowed},
		{"x.LocalHost", dns.TypeAAAA, dns.RcodeSuccess, "::1", "allowed", policy.ReasonAllowed},
		{"localhost", dns.TypeTXT, dns.RcodeSuccess, "", "allowed", policy.ReasonAllowed},
		// text that means something else once labels are joined
		{`allowed\.test`, dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{`evil\000.allowed.test`, dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{`a\032b.wild.test`, dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{`b\195\188cher.wild.test`, dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{`*.wild.test`, dns.TypeA, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
		{".", dns.TypeNS, dns.RcodeNameError, "", "blocked", policy.ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name+"/"+dns.Type(tt.qtype).String(), func(t *testing.T) {
			m := g.query(t, tt.name, tt.qtype)
			if m.Rcode != tt.rcode {
				t.Fatalf("rcode %s, want %s", dns.RcodeToString[m.Rcode], dns.RcodeToString[tt.rcode])
			}
			if got, want := packedName(t, m.Question[0].Name), packedName(t, dns.Fqdn(tt.name)); !bytes.Equal(got, want) {
				t.Errorf("question %q, want it repeated as asked", m.Question[0].Name)
			}
			checkAnswer(t, g, m, tt.want)
			code, text, ok := ede(m)
			if blocked := tt.rcode == dns.RcodeNameError; ok != blocked || ok && code != dns.ExtendedErrorCodeBlocked {
				t.Errorf("EDE %d %q (%v), want Blocked exactly when denied", code, text, ok)
			}
			e := g.events.one(t)
			if e.Type != "dns.query" || e.Door != "dns" || e.Decision != tt.decision || e.Reason != tt.reason.String() ||
				e.QType != dns.Type(tt.qtype).String() || e.RCode != dns.RcodeToString[tt.rcode] ||
				e.Session != "s1" || e.Isolation != "netns" || e.Client == "" {
				t.Errorf("event %+v, want %s %s", e, tt.decision, tt.reason)
			}
		})
	}
}

// checkAnswer compares the addresses of m with want; an empty answer carries an SOA.
func checkAnswer(t *testing.T, g *gate, m *dns.Msg, want string) {
	t.Helper()
	got := addrsOf(m)
	switch want {
	case "":
		if len(m.Answer) != 0 || len(m.Ns) != 1 || m.Ns[0].Header().Rrtype != dns.TypeSOA {
			t.Errorf("answer %v, authority %v; want nothing and an SOA", m.Answer, m.Ns)
		}
	case "pin":
		if len(got) != 1 || !strings.HasPrefix(got[0], "198.18.") {
			t.Fatalf("answer %v, want one synthetic address", got)
		}
		if ttl := m.Answer[0].Header().Ttl; ttl == 0 || ttl > 60 {
			t.Errorf("ttl %d, want 1 to 60", ttl)
		}
		if name, known, synthetic := g.Pins.NameOf(netip.MustParseAddr(got[0])); !known || !synthetic ||
			name.Name() != strings.TrimSuffix(strings.ToLower(m.Question[0].Name), ".") {
			t.Errorf("%s maps back to %v", got[0], name)
		}
	default:
		if !slices.Equal(got, []string{want}) {
			t.Errorf("answer %v, want %s", got, want)
		}
	}
}

func TestHostsEntryForLocalhost(t *testing.T) {
	g, _ := spied(t, compile(t, "", "localhost=127.0.0.1", "localhost:8080"))
	if got := addrsOf(g.query(t, "localhost", dns.TypeA)); len(got) != 1 || !strings.HasPrefix(got[0], "198.18.") {
		t.Errorf("answer %v: a hosts entry goes before RFC 6761", got)
	}
}

func TestANYIsMinimal(t *testing.T) {
	g, _ := spied(t, compile(t, "", "allowed.test"))
	m := g.query(t, "allowed.test", dns.TypeANY)
	if len(m.Answer) != 1 || m.Answer[0].Header().Rrtype != dns.TypeHINFO {
		t.Errorf("answer %v, want one HINFO (RFC 8482)", m.Answer)
	}
}

func TestReverseOfPinned(t *testing.T) {
	c := compile(t, "", "allowed.test")
	g, _ := spied(t, c)
	arpa, err := dns.ReverseAddr(addrsOf(g.query(t, "allowed.test", dns.TypeA))[0])
	if err != nil {
		t.Fatal(err)
	}
	m := g.query(t, arpa, dns.TypePTR)
	if len(m.Answer) != 1 || m.Answer[0].(*dns.PTR).Ptr != "allowed.test." {
		t.Errorf("PTR answer %v", m.Answer)
	}
	c.Store(nil) // the name is no longer allowed
	if m := g.query(t, arpa, dns.TypePTR); m.Rcode != dns.RcodeNameError {
		t.Errorf("PTR of a name that is no longer allowed: %v", m)
	}
}

func TestDeniedAnswerTeaches(t *testing.T) {
	g, _ := spied(t, compile(t, "", "allowed.test"))
	_, text, _ := ede(g.query(t, "denied.test", dns.TypeA))
	if !strings.Contains(text, "--allow denied.test") || len(text) > maxEDEText {
		t.Errorf("EDE text %q, want the flag that allows it", text)
	}
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4) + "test"
	if _, text, _ := ede(g.query(t, long, dns.TypeA)); len(text) == 0 || len(text) > maxEDEText {
		t.Errorf("EDE text of %d bytes, want 1 to %d", len(text), maxEDEText)
	}
	m := new(dns.Msg)
	m.SetQuestion("denied.test.", dns.TypeA)
	if in := g.ask(t, "udp", m); len(in.Extra) != 0 || in.Rcode != dns.RcodeNameError {
		t.Errorf("a client without EDNS got %v", in)
	}
}

func TestNoPolicyDenies(t *testing.T) {
	for name, c := range map[string]*policy.Current{"nil": nil, "empty": new(policy.Current)} {
		g, _ := spied(t, c)
		if m := g.query(t, "allowed.test", dns.TypeA); m.Rcode != dns.RcodeNameError {
			t.Errorf("%s policy answered %v", name, m)
		}
	}
}

func TestReloadIsFelt(t *testing.T) {
	c := compile(t, "", "allowed.test")
	g, _ := spied(t, c)
	if m := g.query(t, "later.test", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Fatalf("before: %v", m)
	}
	c.Store(compile(t, "", "later.test").Load())
	if m := g.query(t, "later.test", dns.TypeA); len(addrsOf(m)) != 1 {
		t.Errorf("after: %v", m)
	}
	if m := g.query(t, "allowed.test", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("withdrawn: %v", m)
	}
}

func TestAskLaterAndAudit(t *testing.T) {
	for _, mode := range []string{"", "forward"} {
		g, _ := spied(t, compile(t, mode, "allowed.test", "!never.test"), func(s *Server) { s.AskLater = true })
		if m := g.query(t, "who.test", dns.TypeA); len(addrsOf(m)) != 1 || !strings.HasPrefix(addrsOf(m)[0], "198.18.") {
			t.Errorf("mode %q: ask later answered %v, want a synthetic address", mode, m)
		}
		if e := g.events.one(t); e.Decision != "allowed" || e.Reason != policy.ReasonHostNotListed.String() {
			t.Errorf("event %+v", e)
		}
		if m := g.query(t, "never.test", dns.TypeA); m.Rcode != dns.RcodeNameError {
			t.Errorf("mode %q: a denied name answered %v", mode, m)
		}
	}
	g, _ := spied(t, compile(t, "", "audit", "allowed.test"))
	if m := g.query(t, "who.test", dns.TypeA); len(addrsOf(m)) != 1 {
		t.Errorf("audit answered %v", m)
	}
	if e := g.events.one(t); !e.Audit || e.Decision != "allowed" || e.Reason != policy.ReasonHostNotListed.String() {
		t.Errorf("event %+v", e)
	}
}

// A wildcard rule cannot use up what is kept for names that the policy spells
// out, also where a wildcard covers those, too.
func TestPinsKeptForSpelledNames(t *testing.T) {
	pins, err := NewPins(netip.MustParsePrefix("192.0.2.0/28")) // 14 addresses
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, &Server{Policy: compile(t, "", "*.wild.test", "api.wild.test"), Pins: pins})
	refused := false
	for i := range 14 {
		refused = g.query(t, fmt.Sprintf("n%d.wild.test", i), dns.TypeA).Rcode == dns.RcodeServerFailure || refused
	}
	if !refused {
		t.Error("a wildcard took every address")
	}
	if m := g.query(t, "api.wild.test", dns.TypeA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
		t.Errorf("a name that the policy spells out: %v", m)
	}
}

func TestPinsExhausted(t *testing.T) {
	pins, err := NewPins(netip.MustParsePrefix("192.0.2.0/30"))
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, &Server{Policy: compile(t, "", "*.wild.test"), Pins: pins})
	for name, want := range map[string]int{"a": dns.RcodeSuccess, "b": dns.RcodeSuccess} {
		if m := g.query(t, name+".wild.test", dns.TypeA); m.Rcode != want {
			t.Errorf("%s: %v", name, m)
		}
	}
	g.events.take()
	if m := g.query(t, "c.wild.test", dns.TypeA); m.Rcode != dns.RcodeServerFailure || len(m.Answer) != 0 {
		t.Errorf("with every address in use: %v", m)
	}
	if e := g.events.one(t); e.Decision != "blocked" || e.Reason != policy.ReasonOverload.String() {
		t.Errorf("event %+v", e)
	}
}

// localhost is answered when the policy says so, and the event says what the
// policy said.
func TestLocalhostIsJudged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy *policy.Current
		rcode  int
		reason string
	}{
		{"built in", compile(t, "", "a.test"), dns.RcodeSuccess, "allowed"},
		{"denied", compile(t, "", "a.test", "!localhost"), dns.RcodeNameError, "denied_by_rule"},
		{"denied in forward mode", compile(t, "forward", "a.test", "!localhost"), dns.RcodeNameError, "denied_by_rule"},
		{"zero policy", new(policy.Current), dns.RcodeNameError, "no_policy"},
		{"no policy", nil, dns.RcodeNameError, "no_policy"},
	} {
		g, _ := spied(t, tt.policy)
		m := g.query(t, "localhost", dns.TypeA)
		e := g.events.one(t)
		if m.Rcode != tt.rcode || e.Reason != tt.reason || (e.Decision == "allowed") != (tt.rcode == dns.RcodeSuccess) {
			t.Errorf("%s: %v, %+v", tt.name, m, e)
		}
	}
}

package policy

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// randomPolicy makes a policy of every kind of rule, hosts entries and
// settings. Its rules are few and its hosts are the generator's, so that
// requests often meet them.
func (g generator) policy(t *testing.T) *Policy {
	d, deny := &Document{}, &Document{}
	for range g.IntN(8) {
		d.Allow = append(d.Allow, Entry{Text: g.rule(false)})
	}
	for range g.IntN(3) {
		deny.Deny = append(deny.Deny, Entry{Text: g.rule(true)})
	}
	for range g.IntN(3) {
		d.Hosts = append(d.Hosts, Entry{Text: g.name() + "=" + g.addr()})
	}
	d.Audit = g.IntN(8) == 0
	if g.IntN(3) == 0 {
		h := g.name()
		d.Allow = append(d.Allow, Entry{Text: h})
		d.Secrets = append(d.Secrets, Secret{Env: "A", Header: "X", Hosts: []Host{host(t, h)}})
	}
	p, err := Compile(d, deny)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// audits reports p as if its file did or did not say audit.
func audits(p *Policy, on bool) *Policy {
	q := *p
	q.audit = on
	return &q
}

// knowing reports p with the hosts entries of c for the names that p has none for.
func knowing(p, c *Policy) *Policy {
	q := *p
	q.static = maps.Clone(c.static)
	if q.static == nil {
		q.static = make(map[Host][]netip.Addr)
	}
	maps.Copy(q.static, p.static)
	return &q
}

// checkUnder holds the property: whatever is asked, at whatever look, p under c
// allows only what p allows and c allows, and asks for what either asks for.
func checkUnder(t *testing.T, p, c *Policy, r Request) Decision {
	t.Helper()
	got := p.Under(c).Decide(r)
	alone := knowing(p, c)
	own, over := audits(alone, p.audit && c.audit).Decide(r), c.Decide(r)
	fail := func(why string) {
		t.Helper()
		t.Fatalf("%s\n%+v\nallow %v deny %v hosts %v audit %t\nunder allow %v deny %v hosts %v audit %t\ngot %+v\nalone %+v\nceiling %+v",
			why, r, texts(p.allowRules), texts(p.denyRules), p.static, p.audit, texts(c.allowRules), texts(c.denyRules), c.static, c.audit, got, own, over)
	}
	if got.Allowed() && (!alone.Decide(r).Allowed() || !own.Allowed() || !over.Allowed()) {
		fail("it allows what one of the two denies")
	}
	static := r.Addr.IsValid() && p.isStatic(r.Host, r.Addr)
	if static && got.Allowed() && !c.isStatic(r.Host, r.Addr) && !c.Decide(Request{Host: HostFromAddr(r.Addr), Port: r.Port}).Allowed() {
		fail("its hosts entry reaches what the ceiling does not name")
	}
	if own.Allowed() && over.Allowed() && !static && !got.Allowed() {
		fail("it denies what both allow")
	}
	if !got.Allowed() {
		if own.Allowed() && over.Reason.Class() == ClassDenied && (got.Reason != ReasonCeiling || got.Suggest(r) != "") {
			fail("the denial does not say that it is the ceiling's")
		}
		if !own.Allowed() && got != own {
			fail("the denial is not its own")
		}
		return got
	}
	if wants := own.Verdict == Intercept || over.Verdict == Intercept; wants != (got.Verdict == Intercept) {
		fail("interception is not what either asks for")
	}
	if got.Needs == WireUnseen && own.Needs != over.Needs {
		fail("a look at the wire is forgotten")
	}
	if got.Audit != (own.Audit || over.Audit) && !static {
		fail("the audit mark is wrong")
	}
	return got
}

func texts(rules []*Rule) (out []string) {
	for _, r := range rules {
		out = append(out, r.Text)
	}
	return out
}

func underRound(t *testing.T, g generator, seen map[Reason]int) {
	p, c, over := g.policy(t), g.policy(t), g.policy(t)
	for range 60 {
		r := g.request(t)
		if g.IntN(10) == 0 {
			r = Request{Host: r.Host, Addr: r.Addr}
		}
		d := checkUnder(t, p, c, r)
		seen[d.Reason]++
		if d.Verdict == Intercept {
			seen[reasonIntercept]++
		}
		checkUnder(t, p, p, r)
		// A ceiling under a ceiling: the entries of the one above count in both.
		twice, all := p.Under(c).Under(over).Decide(r), knowing(knowing(p, c), over)
		if twice.Allowed() && (!all.Under(knowing(c, over)).Decide(r).Allowed() || !all.Under(over).Decide(r).Allowed()) {
			t.Fatalf("%+v passes two ceilings and not each of them", r)
		}
	}
}

const reasonIntercept = Reason(255) // counts interceptions

func TestUnder(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 2026))}
	seen := make(map[Reason]int)
	for range 1500 {
		underRound(t, g, seen)
	}
	for _, r := range []Reason{ReasonAllowed, ReasonCeiling, ReasonMalformed, ReasonHostNotListed, ReasonSNIMismatch, reasonIntercept} {
		if seen[r] == 0 {
			t.Errorf("no request ended in %s: the generator misses it", r)
		}
	}
}

func FuzzUnder(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		underRound(t, generator{rand.New(rand.NewPCG(seed, 1))}, make(map[Reason]int))
	})
}

func TestUnderWays(t *testing.T) {
	for _, tt := range []struct {
		name, own, ceiling, to, addrs string
		want                          Reason
	}{
		{"both", "h.test", "*.test h.test", "h.test:443", "8.8.8.8", ReasonAllowed},
		{"the ceiling alone", "g.test", "h.test", "h.test:443", "8.8.8.8", ReasonHostNotListed},
		{"the session alone", "h.test", "g.test", "h.test:443", "8.8.8.8", ReasonCeiling},
		{"another port", "h.test:*", "h.test:22", "h.test:443", "8.8.8.8", ReasonCeiling},
		{"the ceiling's deny rule", "h.test", ".test !h.test", "h.test:443", "8.8.8.8", ReasonCeiling},
		{"a private address that the session names", "h.test 10.0.0.0/8", "h.test", "h.test:443", "10.0.0.1", ReasonCeiling},
		{"a private address that both name", "h.test 10.0.0.0/8", "h.test 10.0.0.1", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"a private address that the ceiling names", "h.test", "h.test 10.0.0.1", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"a session's hosts entry, private", "h.test =h.test=10.0.0.1", "h.test", "h.test:443", "10.0.0.1", ReasonCeiling},
		{"a session's hosts entry, public", "h.test =h.test=8.8.8.8", "h.test", "h.test:443", "8.8.8.8", ReasonCeiling},
		{"a hosts entry of the ceiling", "h.test", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"another address than the ceiling's hosts entry", "h.test", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.2", ReasonIPProhibited},
		{"a hosts entry of the ceiling for a name that the session does not allow", "g.test", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.1", ReasonHostNotListed},
		{"a session's hosts entry in place of the ceiling's", "h.test =h.test=10.0.0.2", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.2", ReasonCeiling},
		{"a hosts entry of both", "h.test =h.test=10.0.0.1", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"a hosts entry to an address of the ceiling", "h.test =h.test=10.0.0.1", "h.test 10.0.0.0/8", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"a hosts entry to another port of it", "h.test =h.test=10.0.0.1", "h.test 10.0.0.0/8:22", "h.test:443", "10.0.0.1", ReasonCeiling},
		{"the metadata service", "m.test =m.test=169.254.169.254", ".test", "m.test:80", "169.254.169.254", ReasonCeiling},
		{"a literal", "10.0.0.1", "10.0.0.2", "10.0.0.1:443", "10.0.0.1", ReasonCeiling},
		{"a session that audits", "%audit", "g.test", "h.test:443", "8.8.8.8", ReasonHostNotListed},
		{"an auditing ceiling", "h.test", "%audit", "h.test:443", "8.8.8.8", ReasonCeiling}, // allowed and recorded
		{"both audit", "%audit", "%audit", "h.test:443", "8.8.8.8", ReasonHostNotListed},    // allowed and recorded
		{"an auditing ceiling opens nothing", "g.test", "%audit", "h.test:443", "8.8.8.8", ReasonHostNotListed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			compile := func(text string) *Policy {
				d := doc()
				if text == "%audit" {
					d.Audit = true
				} else {
					d = doc(strings.Fields(text)...)
				}
				p, err := Compile(d)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			h, port := authority(t, tt.to)
			p, c := compile(tt.own), compile(tt.ceiling)
			d := p.Under(c).DecideAddrs(Request{Host: h, Port: port}, []netip.Addr{netip.MustParseAddr(tt.addrs)})
			if d.Reason != tt.want || d.Allowed() != (tt.want == ReasonAllowed || d.Audit) || d.Audit != (c.audit && d.Allowed()) {
				t.Errorf("got %+v, want %s", d, tt.want)
			}
		})
	}
}

func TestUnderSettings(t *testing.T) {
	p, err := Compile(&Document{
		Allow: doc("h.test", "GET https://a.test/x/**").Allow, Hosts: doc("=h.test=10.0.0.1").Hosts, Audit: true,
		DNS: DNS{Mode: DNSForward, Upstreams: []Entry{{Text: "192.0.2.1"}}}, Limits: Limits{Connections: 1 << 20, HeadBytes: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(&Document{
		Allow: doc("h.test", "GET https://h.test/x/**", "GET https://b.test/x/**", "GET https://*.c.test/**").Allow, Hosts: doc("=db.test=10.0.0.2").Hosts,
		DNS: DNS{Upstreams: []Entry{{Text: "192.0.2.2"}}}, Limits: Limits{HeadBytes: 200, IdleTimeoutSeconds: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := p.Under(c)
	if u.Audit() || p.Digest() == u.Digest() || c.Digest() == u.Digest() || !strings.HasPrefix(u.Digest(), "sha256:") {
		t.Errorf("audit %t, digest %s", u.Audit(), u.Digest())
	}
	if got := u.DNS(); got.Mode != DNSSynthetic || len(got.Upstreams) != 1 || got.Upstreams[0].Text != "192.0.2.2" {
		t.Errorf("DNS %+v", got)
	}
	if want := (Limits{Connections: 16384, HeadBytes: 100, IdleTimeoutSeconds: 5}); u.Limits() != want {
		t.Errorf("limits %+v", u.Limits())
	}
	if got := u.Static(host(t, "db.test")); len(got) != 1 {
		t.Errorf("the ceiling's hosts entry is not found: %v", got)
	}
	if got := u.Static(host(t, "h.test")); len(got) != 1 || got[0].String() != "10.0.0.1" {
		t.Errorf("hosts entry %v", got)
	}
	if got := u.Intercepted(); !slices.Equal(got, []string{"*.c.test", "a.test", "h.test"}) {
		t.Errorf("intercepted: %q", got)
	}
	if d := u.Decide(Request{Host: host(t, "h.test"), Port: 443}); d.Verdict != Intercept || d.Needs != WireTLS {
		t.Errorf("the ceiling's path rule is not kept: %+v", d)
	}
	only, err := u.Only(Entry{Text: "g.test"})
	if err != nil {
		t.Fatal(err)
	}
	if d := only.Decide(Request{Host: host(t, "g.test"), Port: 443}); d.Allowed() || d.Reason != ReasonCeiling {
		t.Errorf("a person's yes lifts the ceiling: %+v", d)
	}
	for name, none := range map[string]*Policy{"nil ceiling": p.Under(nil), "zero ceiling": p.Under(new(Policy)), "nil": (*Policy)(nil).Under(c), "zero": new(Policy).Under(c)} {
		if d := none.Decide(Request{Host: host(t, "h.test"), Port: 443}); d.Allowed() || d.Reason != ReasonNoPolicy {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if a, b := p.Under(c).Digest(), p.Under(p).Digest(); a == b || a != p.Under(c).Digest() {
		t.Error("the digest does not tell the ceiling")
	}
}

func TestUnderAllocatesNothing(t *testing.T) {
	p := hotPolicy(t).Under(hotPolicy(t)).Under(hotPolicy(t))
	for name, r := range hotRequests(t) {
		if n := testing.AllocsPerRun(100, func() { p.Decide(r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

package policy

import "testing"

// Threat: POST with X-HTTP-Method-Override: DELETE passes a rule against DELETE,
// X-Original-URL one against a path.
func TestDecideHead(t *testing.T) {
	d := doc("api.test", "!DELETE https://api.test/**", "plain.test", "sec.test", "sec.test:8443")
	d.Secrets = []Secret{{Env: "T", Header: "authorization", Hosts: []Host{host(t, "sec.test")}}}
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	under := compileRules(t, "api.test", "plain.test", "sec.test").Under(p)
	for _, tt := range []struct {
		name, host, method string
		port               uint16
		head               *Head
		want               Reason
	}{
		{"nothing", "api.test", "POST", 443, nil, ReasonAllowed},
		{"an empty head", "api.test", "POST", 443, &Head{}, ReasonAllowed},
		{"the same", "api.test", "POST", 443, &Head{Methods: []string{"POST"}, Paths: []string{"/p?q"}, Hosts: []string{"api.test", "api.test:443"}}, ReasonAllowed},
		{"another method", "api.test", "POST", 443, &Head{Methods: []string{"POST", "DELETE"}}, ReasonOverride},
		{"in lower case", "api.test", "POST", 443, &Head{Methods: []string{"post"}}, ReasonOverride},
		{"another path", "api.test", "POST", 443, &Head{Paths: []string{"/q"}}, ReasonOverride},
		{"another host", "api.test", "POST", 443, &Head{Hosts: []string{"b.test"}}, ReasonOverride},
		{"another port", "api.test", "POST", 443, &Head{Hosts: []string{"api.test:80"}}, ReasonOverride},
		{"no host", "api.test", "POST", 443, &Head{Hosts: []string{"_ "}}, ReasonOverride},
		{"a host without path rules", "sec.test", "POST", 443, &Head{Methods: []string{"DELETE"}}, ReasonAllowed},
		{"TRACE", "api.test", "TRACE", 443, nil, ReasonReflects},
		{"Trace", "sec.test", "Trace", 443, nil, ReasonReflects},
		{"TRACK", "sec.test", "TRACK", 443, nil, ReasonReflects},
		{"OPTIONS with hops", "sec.test", "OPTIONS", 443, &Head{Hops: true}, ReasonReflects},
		{"OPTIONS with hops, no secret", "api.test", "OPTIONS", 443, &Head{Hops: true}, ReasonAllowed},
		{"a placeholder in its place", "sec.test", "GET", 443, &Head{Placed: map[string][]string{"T": {"Authorization"}}}, ReasonAllowed},
		{"in another field", "sec.test", "GET", 443, &Head{Placed: map[string][]string{"T": {"Authorization", "Cookie"}}}, ReasonMisplaced},
		{"in the content", "sec.test", "GET", 443, &Head{Placed: map[string][]string{"T": {""}}}, ReasonMisplaced},
		{"towards another host", "api.test", "GET", 443, &Head{Placed: map[string][]string{"T": {"Authorization"}}}, ReasonMisplaced},
		{"towards another port", "sec.test", "GET", 8443, &Head{Placed: map[string][]string{"T": {"Authorization"}}}, ReasonMisplaced},
		{"in the clear", "sec.test", "GET", 80, &Head{Placed: map[string][]string{"T": {"Authorization"}}}, ReasonMisplaced},
		{"an unknown one", "sec.test", "GET", 443, &Head{Placed: map[string][]string{"U": {"Authorization"}}}, ReasonMisplaced},
	} {
		h := host(t, tt.host)
		r := Request{Host: h, Port: tt.port, Wire: WireTLS, SNI: h, HTTPHost: h, Method: tt.method, Path: "/p", Head: tt.head}
		if tt.port == 80 {
			r.Wire, r.SNI = WireHTTP, Host{}
		}
		if got := p.Decide(r); got.Reason != tt.want || got.Allowed() != (tt.want == ReasonAllowed) {
			t.Errorf("%s: %s, %s", tt.name, got.Verdict, got.Reason)
		}
		if tt.want == ReasonOverride || tt.want == ReasonReflects {
			if got := under.Decide(r); got.Allowed() {
				t.Errorf("%s: allowed under a ceiling that denies it", tt.name)
			}
		}
	}
}

func TestNeedsHead(t *testing.T) {
	with := doc("a.test")
	with.Secrets = []Secret{{Env: "T", Header: "X-Key", Hosts: []Host{host(t, "a.test")}}}
	secrets, err := Compile(with)
	if err != nil {
		t.Fatal(err)
	}
	plain := compileRules(t, "a.test")
	for _, tt := range []struct {
		name string
		p    *Policy
		want bool
	}{
		{"none", nil, false},
		{"zero", new(Policy), false},
		{"hosts", plain, false},
		{"a path", compileRules(t, "GET https://a.test/b"), true},
		{"a denied path", compileRules(t, "a.test", "!GET https://a.test/b"), true},
		{"a secret", secrets, true},
		{"of a ceiling", plain.Under(compileRules(t, "GET https://a.test/b")), true},
	} {
		if got := tt.p.NeedsHead(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// An address of the machine that dials is reached by a name that lists it, or by a
// rule for it alone.
func TestDecideLocalAddr(t *testing.T) {
	p := compileRules(t, "a.test", "h.test", "=h.test=203.0.114.9", "9.9.9.0/24:443", "9.9.9.9:443")
	for addr, want := range map[string]Reason{"9.9.9.9": ReasonAllowed, "9.9.9.8": ReasonIPProhibited, "203.0.114.9": ReasonIPProhibited} {
		r := Request{Host: host(t, "a.test"), Port: 443, Addr: host(t, addr).Addr()}
		if got := p.Decide(r).Reason; got != ReasonAllowed {
			t.Errorf("%s elsewhere: %s", addr, got)
		}
		r.Local = true
		if got := p.Decide(r).Reason; got != want {
			t.Errorf("%s here: %s", addr, got)
		}
	}
	r := Request{Host: host(t, "h.test"), Port: 443, Addr: host(t, "203.0.114.9").Addr(), Local: true}
	if got := p.Decide(r).Reason; got != ReasonAllowed {
		t.Errorf("a name whose hosts entry lists it: %s", got)
	}
}

// A secret goes to port 443, or to the port that stands beside its host.
func TestSecretPorts(t *testing.T) {
	text := func(host string) []byte {
		return []byte("allow: [h.test, \"h.test:8443\"]\nsecrets:\n- {env: A, header: X, hosts: [\"" + host + "\"]}\n")
	}
	for host, want := range map[string]uint16{"h.test": 443, "h.test:443": 443, "h.test:8443": 8443} {
		d, err := ParseFile("f", text(host))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		h := d.Secrets[0].Targets()[0].Host
		for _, port := range []uint16{443, 8443} {
			if got := len(p.SecretsFor(h, port)) == 1; got != (port == want) {
				t.Errorf("%s at port %d: %t", host, port, got)
			}
			if d := p.Decide(Request{Host: h, Port: port}); (d.Verdict == Intercept) != (port == want) {
				t.Errorf("%s at port %d: %s", host, port, d.Verdict)
			}
		}
	}
	for _, host := range []string{"h.test:80", "h.test:9", "h.test:0", "*.h.test", "h.test:*"} {
		d, err := ParseFile("f", text(host))
		if err == nil {
			_, err = Compile(d)
		}
		if err == nil {
			t.Errorf("%s: accepted", host)
		}
	}
}

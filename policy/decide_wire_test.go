package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestDecideWire(t *testing.T) {
	const rules = "h.test:* g.test 10.0.0.1:* raw:r.test:443 GET_https://p.test/**"
	for _, tt := range []struct {
		name, to   string
		wire       Wire
		server     string
		serverPort uint16
		reason     Reason
	}{
		{"443 TLS", "h.test:443", WireTLS, "h.test", 0, ReasonAllowed},
		{"443 no SNI", "h.test:443", WireTLS, "", 0, ReasonSNIMismatch},
		{"443 other SNI, allowed itself", "h.test:443", WireTLS, "g.test", 0, ReasonSNIMismatch},
		{"443 SNI is an address", "h.test:443", WireTLS, "10.0.0.1", 0, ReasonSNIMismatch},
		{"443 HTTP", "h.test:443", WireHTTP, "h.test", 443, ReasonNotTLS},
		{"443 other", "h.test:443", WireOther, "", 0, ReasonNotTLS},
		{"443 bad", "h.test:443", WireBad, "", 0, ReasonMalformed},
		{"80 HTTP", "h.test:80", WireHTTP, "h.test", 0, ReasonAllowed},
		{"80 HTTP with port", "h.test:80", WireHTTP, "h.test", 80, ReasonAllowed},
		{"80 HTTP other port", "h.test:80", WireHTTP, "h.test", 81, ReasonHostMismatch},
		{"80 HTTP other host", "h.test:80", WireHTTP, "g.test", 0, ReasonHostMismatch},
		{"80 HTTP no host", "h.test:80", WireHTTP, "", 0, ReasonHostMismatch},
		{"80 TLS", "h.test:80", WireTLS, "h.test", 0, ReasonNotHTTP},
		{"80 other", "h.test:80", WireOther, "", 0, ReasonNotHTTP},
		{"80 bad", "h.test:80", WireBad, "", 0, ReasonMalformed},
		{"22 other", "h.test:22", WireOther, "", 0, ReasonAllowed},
		{"22 TLS", "h.test:22", WireTLS, "h.test", 0, ReasonAllowed},
		{"22 TLS no SNI", "h.test:22", WireTLS, "", 0, ReasonSNIMismatch},
		{"22 TLS other SNI", "h.test:22", WireTLS, "g.test", 0, ReasonSNIMismatch},
		{"8080 HTTP", "h.test:8080", WireHTTP, "h.test", 8080, ReasonAllowed},
		{"8080 HTTP other host", "h.test:8080", WireHTTP, "g.test", 8080, ReasonHostMismatch},
		{"8080 HTTP other port", "h.test:8080", WireHTTP, "h.test", 8081, ReasonHostMismatch},
		{"8080 HTTP no host", "h.test:8080", WireHTTP, "", 0, ReasonAllowed},
		{"8080 bad", "h.test:8080", WireBad, "", 0, ReasonMalformed},
		{"address 443 no SNI", "10.0.0.1:443", WireTLS, "", 0, ReasonAllowed},
		{"address 443 SNI", "10.0.0.1:443", WireTLS, "h.test", 0, ReasonSNIMismatch},
		{"address 443 SNI is the address", "10.0.0.1:443", WireTLS, "10.0.0.1", 0, ReasonSNIMismatch},
		{"address 443 other", "10.0.0.1:443", WireOther, "", 0, ReasonNotTLS},
		{"address 80 HTTP", "10.0.0.1:80", WireHTTP, "10.0.0.1", 0, ReasonAllowed},
		{"address 80 HTTP other host", "10.0.0.1:80", WireHTTP, "h.test", 0, ReasonHostMismatch},
		{"address 5432 other", "10.0.0.1:5432", WireOther, "", 0, ReasonAllowed},
		{"address 5432 TLS no SNI", "10.0.0.1:5432", WireTLS, "", 0, ReasonAllowed},
		{"raw other", "r.test:443", WireOther, "", 0, ReasonAllowed},
		{"raw TLS other SNI", "r.test:443", WireTLS, "g.test", 0, ReasonAllowed},
		{"raw bad", "r.test:443", WireBad, "", 0, ReasonMalformed},
		{"path TLS", "p.test:443", WireTLS, "p.test", 0, ReasonAllowed},
		{"path other SNI", "p.test:443", WireTLS, "h.test", 0, ReasonSNIMismatch},
		{"path HTTP", "p.test:443", WireHTTP, "p.test", 0, ReasonNotTLS},
		{"a wire nobody knows", "r.test:443", WireBad + 1, "", 0, ReasonMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compileRules(t, strings.Split(strings.ReplaceAll(strings.ReplaceAll(rules, " ", "\n"), "_", " "), "\n")...)
			h, port := authority(t, tt.to)
			d := p.Decide(Request{Host: h, Port: port, Wire: tt.wire, SNI: host(t, tt.server), HTTPHost: host(t, tt.server), HTTPPort: tt.serverPort})
			if d.Reason != tt.reason || d.Allowed() != (tt.reason == ReasonAllowed) {
				t.Errorf("got %s %s, want %s", d.Verdict, d.Reason, tt.reason)
			}
		})
	}
}

func TestDecideRequest(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules []string
		req   string // METHOD path
		want  Reason
	}{
		{"covered", []string{"GET https://h.test/v1/**"}, "GET /v1/x", ReasonAllowed},
		{"other method", []string{"GET https://h.test/v1/**"}, "POST /v1/x", ReasonMethodNotListed},
		{"HEAD is not GET", []string{"GET https://h.test/v1/**"}, "HEAD /v1/x", ReasonMethodNotListed},
		{"methods have a case", []string{"GET https://h.test/v1/**"}, "get /v1/x", ReasonMethodNotListed},
		{"other path", []string{"GET https://h.test/v1/**"}, "GET /v2/x", ReasonPathNotListed},
		{"two methods", []string{"GET,POST https://h.test/v1/**"}, "POST /v1/x", ReasonAllowed},
		{"any method", []string{"* https://h.test/v1/**"}, "PURGE /v1/x", ReasonAllowed},
		{"two rules", []string{"GET https://h.test/a/**", "POST https://h.test/b/**"}, "POST /b/x", ReasonAllowed},
		{"two rules crossed", []string{"GET https://h.test/a/**", "POST https://h.test/b/**"}, "POST /a/x", ReasonMethodNotListed},
		{"whole host beside", []string{"h.test", "GET https://h.test/v1/**"}, "POST /v2", ReasonAllowed},
		{"deny path", []string{"h.test", "!* https://h.test/admin/**"}, "GET /admin/x", ReasonDeniedByRule},
		{"deny path, elsewhere", []string{"h.test", "!* https://h.test/admin/**"}, "GET /x", ReasonAllowed},
		{"deny path, encoded", []string{"h.test", "!* https://h.test/admin/**"}, "GET /%61dmin/x", ReasonDeniedByRule},
		{"deny path, doubled slash", []string{"h.test", "!* https://h.test/admin/**"}, "GET //admin/x", ReasonDeniedByRule},
		{"deny path, encoded slash", []string{"h.test", "!* https://h.test/admin/**"}, "GET /admin%2Fx", ReasonDeniedByRule},
		{"deny path, parameters", []string{"h.test", "!* https://h.test/admin/**"}, "GET /admin;a=b/x", ReasonDeniedByRule},
		{"deny path, dots", []string{"h.test", "!* https://h.test/admin/**"}, "GET /x/../admin", ReasonMalformed},
		{"deny method", []string{"h.test", "!DELETE https://h.test/**"}, "DELETE /x", ReasonDeniedByRule},
		{"deny method, other", []string{"h.test", "!DELETE https://h.test/**"}, "GET /x", ReasonAllowed},
		{"deny beats allow", []string{"* https://h.test/**", "!GET https://h.test/x"}, "GET /x", ReasonDeniedByRule},
		{"dots", []string{"GET https://h.test/v1/**"}, "GET /v1/../v2", ReasonMalformed},
		{"encoded dots", []string{"GET https://h.test/v1/**"}, "GET /v1/%2e%2e/v2", ReasonMalformed},
		{"dots behind an encoded slash", []string{"GET https://h.test/v1/**"}, "GET /v1/..%2fv2", ReasonMalformed},
		{"encoded slash under **", []string{"GET https://h.test/v1/**"}, "GET /v1/a%2Fb", ReasonAllowed},
		{"no path", []string{"GET https://h.test/v1/**"}, "GET ", ReasonMalformed},
		{"asterisk-form", []string{"* https://h.test/**"}, "OPTIONS *", ReasonMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compileRules(t, tt.rules...)
			h := host(t, "h.test")
			method, path, _ := strings.Cut(tt.req, " ")
			d := p.Decide(Request{Host: h, Port: 443, Wire: WireTLS, SNI: h, HTTPHost: h, Method: method, Path: path})
			if d.Reason != tt.want || d.Allowed() != (tt.want == ReasonAllowed) || d.Verdict == Intercept {
				t.Errorf("got %s %s, want %s", d.Verdict, d.Reason, tt.want)
			}
		})
	}
	// Without path rules the request itself is nobody's business.
	p := compileRules(t, "h.test")
	h := host(t, "h.test")
	if d := p.Decide(Request{Host: h, Port: 80, Wire: WireHTTP, HTTPHost: h, Method: "GET", Path: "/a/../b"}); d.Verdict != Allow {
		t.Errorf("plain host: %s %s", d.Verdict, d.Reason)
	}
}

// TestDecideInsideTLS judges the two names of a request inside intercepted TLS:
// the SNI that led there, and its own Host.
func TestDecideInsideTLS(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rule  string
		to    string
		sni   string
		host  string // and its port
		audit bool
		want  Reason
		allow bool
	}{
		{"both", "GET https://h.test/v1/**", "h.test:443", "h.test", "h.test", false, ReasonAllowed, true},
		{"Host with the port", "GET https://h.test/v1/**", "h.test:443", "h.test", "h.test:443", false, ReasonAllowed, true},
		{"Host with another port", "GET https://h.test/v1/**", "h.test:443", "h.test", "h.test:80", false, ReasonHostMismatch, false},
		{"another Host", "GET https://h.test/v1/**", "h.test:443", "h.test", "g.test", false, ReasonHostMismatch, false},
		{"no Host", "GET https://h.test/v1/**", "h.test:443", "h.test", "", false, ReasonHostMismatch, false},
		{"another SNI", "GET https://h.test/v1/**", "h.test:443", "g.test", "h.test", false, ReasonSNIMismatch, false},
		{"Host allowed elsewhere", "GET https://h.test/v1/** g.test", "h.test:443", "h.test", "g.test", false, ReasonHostMismatch, false},
		{"another Host and another path", "GET https://h.test/v2/**", "h.test:443", "h.test", "g.test", false, ReasonHostMismatch, false},
		{"other port", "GET https://h.test:8443/v1/**", "h.test:8443", "h.test", "h.test:8443", false, ReasonAllowed, true},
		{"other port, not in Host", "GET https://h.test:8443/v1/**", "h.test:8443", "h.test", "h.test", false, ReasonAllowed, true},
		{"other port, other Host", "GET https://h.test:8443/v1/**", "h.test:8443", "h.test", "g.test", false, ReasonHostMismatch, false},
		{"address", "GET https://10.0.0.1/v1/**", "10.0.0.1:443", "", "10.0.0.1", false, ReasonAllowed, true},
		{"address, Host is a name", "GET https://10.0.0.1/v1/**", "10.0.0.1:443", "", "h.test", false, ReasonHostMismatch, false},
		{"a policy that is audited", "GET https://h.test/v1/**", "h.test:443", "h.test", "g.test", true, ReasonHostMismatch, true},
		{"a rule that was reloaded", "h.test", "h.test:443", "h.test", "g.test", false, ReasonHostMismatch, false},
		{"a raw: rule that was reloaded", "raw:h.test:443", "h.test:443", "h.test", "g.test", false, ReasonHostMismatch, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := doc(tt.rule)
			if strings.HasSuffix(tt.rule, " g.test") {
				d = doc(strings.TrimSuffix(tt.rule, " g.test"), "g.test")
			}
			d.Audit = tt.audit
			p, err := Compile(d)
			if err != nil {
				t.Fatal(err)
			}
			r := Request{Wire: WireTLS, SNI: host(t, tt.sni), Method: "GET", Path: "/v1/x"}
			r.Host, r.Port = authority(t, tt.to)
			if r.HTTPHost, r.HTTPPort, err = ParseAuthority(tt.host); err != nil {
				r.HTTPHost = host(t, tt.host)
			}
			got := p.Decide(r)
			if got.Allowed() != tt.allow || got.Reason != tt.want || got.Audit != tt.audit || got.Verdict == Intercept {
				t.Errorf("got %s %s (audit %v), want %s", got.Verdict, got.Reason, got.Audit, tt.want)
			}
			r.Method, r.Path = "", ""
			if tt.want == ReasonHostMismatch && p.Decide(r).Reason == ReasonHostMismatch {
				t.Error("the Host of a request was judged before there was one")
			}
		})
	}
}

func TestDecideSecret(t *testing.T) {
	d := doc("h.test", "g.test:22,443", "raw:r.test:443")
	for _, h := range []string{"h.test", "g.test", "r.test"} {
		d.Secrets = append(d.Secrets, Secret{Env: "TOKEN", Header: "Authorization", Hosts: []Host{host(t, h)}})
	}
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]Verdict{"h.test:443": Intercept, "h.test:80": Allow, "g.test:22": Allow, "g.test:443": Intercept, "r.test:443": Intercept} {
		h, port := authority(t, to)
		if got := p.Decide(Request{Host: h, Port: port}); got.Verdict != want {
			t.Errorf("%s = %s, want %s", to, got.Verdict, want)
		}
	}
	h := host(t, "h.test")
	got := p.Decide(Request{Host: h, Port: 443, Wire: WireTLS, SNI: h, HTTPHost: h, Method: "GET", Path: "/a/../b"})
	if got.Verdict != Allow {
		t.Errorf("a request to a host without path rules: %s %s", got.Verdict, got.Reason)
	}
}

func TestDecideAudit(t *testing.T) {
	d := doc("h.test", "!bad.test")
	d.Audit = true
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	h := host(t, "h.test")
	for _, tt := range []struct {
		req   Request
		want  Reason
		allow bool
	}{
		{Request{Host: h, Port: 443}, ReasonAllowed, true},
		{Request{Host: h, Port: 22}, ReasonPortNotListed, true},
		{Request{Host: host(t, "bad.test"), Port: 443}, ReasonDeniedByRule, true},
		{Request{Host: host(t, "x.test"), Port: 443}, ReasonHostNotListed, true},
		{Request{Host: host(t, "10.0.0.1"), Port: 443}, ReasonIPProhibited, true},
		{Request{Host: h, Port: 443, Wire: WireOther}, ReasonNotTLS, true},
		{Request{Host: h, Port: 443, Wire: WireBad}, ReasonMalformed, false},
		{Request{Port: 443}, ReasonMalformed, false},
	} {
		got := p.Decide(tt.req)
		if got.Allowed() != tt.allow || got.Reason != tt.want || got.Audit != (tt.allow && tt.want != ReasonAllowed) {
			t.Errorf("%+v: %+v", tt.req, got)
		}
		if got.Audit && got.Needs != WireUnseen {
			t.Errorf("%+v: audit still needs %d", tt.req, got.Needs)
		}
	}
	got := p.DecideAddrs(Request{Host: h, Port: 443}, []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")})
	if !got.Audit || got.Reason != ReasonIPProhibited {
		t.Errorf("audited address: %+v", got)
	}
	if got := p.DecideAddrs(Request{Host: h, Port: 443}, nil); got.Allowed() {
		t.Errorf("audit found an address where there is none: %+v", got)
	}
}

// TestLooksNarrow checks the promise doors rely on: bringing more facts never
// turns a denial into an allowance.
func TestLooksNarrow(t *testing.T) {
	p := compileRules(t, "h.test", "raw:r.test:443", "GET https://p.test/v1/**", "10.0.0.0/8", "!bad.h.test")
	addrs := []netip.Addr{{}, netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")}
	for _, name := range []string{"h.test", "r.test", "p.test", "x.test", "bad.h.test", "10.0.0.1", "127.0.0.1"} {
		for _, port := range []uint16{22, 80, 443} {
			h := host(t, name)
			first := p.Decide(Request{Host: h, Port: port})
			for _, a := range addrs {
				for wire := WireUnseen; wire <= WireBad; wire++ {
					for _, method := range []string{"", "GET"} {
						d := p.Decide(Request{Host: h, Port: port, Addr: a, Wire: wire, SNI: h, HTTPHost: h, Method: method, Path: "/v1/x"})
						if d.Allowed() && !first.Allowed() {
							t.Errorf("%s:%d denied by name, allowed with %v %d %q", name, port, a, wire, method)
						}
					}
				}
			}
		}
	}
}

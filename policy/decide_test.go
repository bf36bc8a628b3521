package policy

import (
	"net/netip"
	"strings"
	"testing"
)

// doc makes a document of rules; a leading "!" makes a deny rule, "=" a hosts
// entry, "@" a preset.
func doc(rules ...string) *Document {
	d := &Document{}
	for i, r := range rules {
		pos := Pos{File: "test", Line: i + 1, Column: 1}
		switch r[0] {
		case '!':
			d.Deny = append(d.Deny, Entry{r[1:], pos})
		case '=':
			d.Hosts = append(d.Hosts, Entry{r[1:], pos})
		case '@':
			d.Presets = append(d.Presets, Entry{r[1:], pos})
		default:
			d.Allow = append(d.Allow, Entry{r, pos})
		}
	}
	return d
}

func compileRules(t testing.TB, rules ...string) *Policy {
	t.Helper()
	p, err := Compile(doc(rules...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func host(t testing.TB, s string) Host {
	t.Helper()
	if s == "" {
		return Host{}
	}
	h, err := ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func authority(t testing.TB, s string) (Host, uint16) {
	t.Helper()
	if h, ok := strings.CutSuffix(s, ":0"); ok {
		return host(t, h), 0
	}
	h, port, err := ParseAuthority(s)
	if err != nil {
		t.Fatal(err)
	}
	return h, port
}

// nameCases: rules (_ stands for the space after a method) and what the first
// look says about a host and port; port 0 is a DNS question.
var nameCases = []struct {
	name, rules, to string
	verdict         Verdict
	reason          Reason
	needs           Wire
}{
	{"exact, 443", "api.example.com", "api.example.com:443", Allow, ReasonAllowed, WireTLS},
	{"exact, 80", "api.example.com", "api.example.com:80", Allow, ReasonAllowed, WireHTTP},
	{"exact, other port", "api.example.com", "api.example.com:8080", Deny, ReasonPortNotListed, 0},
	{"exact is not a suffix", "example.com", "api.example.com:443", Deny, ReasonHostNotListed, 0},
	{"exact is not a prefix", "example.com", "example.com.evil.org:443", Deny, ReasonHostNotListed, 0},
	{"rule in capitals with a dot", "API.Example.com.", "api.example.com:443", Allow, ReasonAllowed, WireTLS},
	{"rule in Unicode", "bücher.example", "xn--bcher-kva.example:443", Allow, ReasonAllowed, WireTLS},
	{"below", "*.example.com", "api.example.com:443", Allow, ReasonAllowed, WireTLS},
	{"below, deep", "*.example.com", "a.b.c.example.com:443", Allow, ReasonAllowed, WireTLS},
	{"below is not the apex", "*.example.com", "example.com:443", Deny, ReasonHostNotListed, 0},
	{"below stops at a dot", "*.example.com", "evilexample.com:443", Deny, ReasonHostNotListed, 0},
	{"tree, apex", ".example.com", "example.com:443", Allow, ReasonAllowed, WireTLS},
	{"tree, below", ".example.com", "a.example.com:443", Allow, ReasonAllowed, WireTLS},
	{"tree stops at a dot", ".example.com", "evilexample.com:443", Deny, ReasonHostNotListed, 0},
	{"ports", "github.com:22,443", "github.com:22", Allow, ReasonAllowed, WireOther},
	{"ports replace the default", "github.com:22,443", "github.com:80", Deny, ReasonPortNotListed, 0},
	{"any port", "h.test:*", "h.test:1", Allow, ReasonAllowed, WireOther},
	{"range, low edge", "h.test:8000-8100", "h.test:8000", Allow, ReasonAllowed, WireOther},
	{"range, high edge", "h.test:8000-8100", "h.test:8100", Allow, ReasonAllowed, WireOther},
	{"range, below", "h.test:8000-8100", "h.test:7999", Deny, ReasonPortNotListed, 0},
	{"range, above", "h.test:8000-8100", "h.test:8101", Deny, ReasonPortNotListed, 0},
	{"nothing", "", "h.test:443", Deny, ReasonHostNotListed, 0},
	{"private name service", "*.internal", "db.internal:443", Allow, ReasonAllowed, WireTLS},

	{"deny beats allow", ".example.com !bad.example.com", "bad.example.com:443", Deny, ReasonDeniedByRule, 0},
	{"deny a suffix", "bad.example.com .x.test !*.example.com:80", "bad.example.com:80", Deny, ReasonDeniedByRule, 0},
	{"deny of a port leaves others", "h.test !h.test:80", "h.test:443", Allow, ReasonAllowed, WireTLS},
	{"deny of a port", "h.test !h.test:80", "h.test:80", Deny, ReasonDeniedByRule, 0},
	{"deny without ports is every port", "*.test:* !h.test", "h.test:22", Deny, ReasonDeniedByRule, 0},
	{"deny of what nothing allows", "!h.test", "h.test:443", Deny, ReasonDeniedByRule, 0},

	{"IPv4", "203.0.114.7:5432", "203.0.114.7:5432", Allow, ReasonAllowed, WireOther},
	{"IPv4, default ports", "203.0.114.7", "203.0.114.7:443", Allow, ReasonAllowed, WireTLS},
	{"CIDR", "203.0.113.0/24:5432", "203.0.113.9:5432", Allow, ReasonAllowed, WireOther},
	{"CIDR, other port", "203.0.113.0/24:5432", "203.0.113.9:443", Deny, ReasonPortNotListed, 0},
	{"CIDR, first address outside", "203.0.113.0/24:5432", "203.0.114.0:5432", Deny, ReasonHostNotListed, 0},
	{"CIDR does not name names", "0.0.0.0/0", "example.com:443", Deny, ReasonHostNotListed, 0},
	{"mapped is judged as IPv4", "203.0.114.7", "[::ffff:203.0.114.7]:443", Allow, ReasonAllowed, WireTLS},
	{"private without a rule", "example.com", "10.0.0.1:443", Deny, ReasonIPProhibited, 0},
	{"metadata", "0.0.0.0/0 ::/0", "169.254.169.254:80", Deny, ReasonIPProhibited, 0},
	{"a wide CIDR is the public Internet", "0.0.0.0/0", "10.0.0.1:443", Deny, ReasonIPProhibited, 0},
	{"a wide CIDR, public", "0.0.0.0/0", "8.8.8.8:443", Allow, ReasonAllowed, WireTLS},
	{"private named", "10.0.0.0/8:*", "10.9.8.7:22", Allow, ReasonAllowed, WireOther},
	{"loopback named", "127.0.0.1:8080", "127.0.0.1:8080", Allow, ReasonAllowed, WireOther},
	{"loopback in IPv6", "127.0.0.1:8080", "[::1]:8080", Deny, ReasonIPProhibited, 0},
	{"IPv6", "[2606:4700::1]:853", "[2606:4700::1]:853", Allow, ReasonAllowed, WireOther},
	{"IPv6 without ports", "2606:4700::1", "[2606:4700::1]:443", Allow, ReasonAllowed, WireTLS},
	{"IPv6 prefix with port", "[2606:4700::/32]:853", "[2606:4700:1::1]:853", Allow, ReasonAllowed, WireOther},
	{"IPv6 prefix", "2606:4700::/32", "[2606:4700:1::1]:443", Allow, ReasonAllowed, WireTLS},
	{"NAT64 of a denied address", "::/0 !10.0.0.0/8", "[64:ff9b::10.0.0.1]:443", Deny, ReasonDeniedByRule, 0},
	{"6to4 of a private address", "::/0", "[2002:a00:1::1]:443", Deny, ReasonIPProhibited, 0},
	{"Teredo of a public address", "::/0", "[2001:0:808:808::f7f7:f7f7]:443", Allow, ReasonAllowed, WireTLS},
	{"Teredo of a denied client", "::/0 !1.2.3.4", "[2001:0:808:808::fefd:fcfb]:443", Deny, ReasonDeniedByRule, 0},
	{"Teredo of a denied server", "::/0 !8.8.8.8", "[2001:0:808:808::fefd:fcfb]:443", Deny, ReasonDeniedByRule, 0},
	{"Teredo of an allowed client", "1.2.3.4", "[2001:0:808:808::fefd:fcfb]:443", Allow, ReasonAllowed, WireTLS},
	{"Teredo of an allowed server", "8.8.8.8", "[2001:0:808:808::fefd:fcfb]:443", Deny, ReasonHostNotListed, 0},
	{"Teredo of a named private server", "10.0.0.0/8", "[2001:0:a00:1::5601:5601]:443", Deny, ReasonIPProhibited, 0},
	{"deny an address in an allowed prefix", "10.0.0.0/8 !10.0.0.1", "10.0.0.1:443", Deny, ReasonDeniedByRule, 0},

	{"raw", "raw:h.test:443", "h.test:443", Allow, ReasonAllowed, WireUnseen},
	{"raw beside plain", "h.test raw:h.test:443", "h.test:443", Allow, ReasonAllowed, WireUnseen},
	{"raw covers its port only", "h.test raw:h.test:443", "h.test:80", Allow, ReasonAllowed, WireHTTP},
	{"deny beats raw", "raw:h.test:443-460 !h.test:440-450", "h.test:443", Deny, ReasonDeniedByRule, 0},

	{"path rule", "GET_https://h.test/v1/**", "h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"path rule, port 80", "GET_https://h.test/v1/**", "h.test:80", Deny, ReasonPortNotListed, 0},
	{"path rule, own port", "GET_https://h.test:8443/v1/**", "h.test:8443", Intercept, ReasonAllowed, WireTLS},
	{"path rule beside a whole host", "h.test GET_https://h.test/v1/**", "h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"path rule beside a whole host, port 80", "h.test GET_https://h.test/v1/**", "h.test:80", Allow, ReasonAllowed, WireHTTP},
	{"path rule below", "GET_https://*.h.test/v1/**", "a.h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"deny path rule", "h.test !*_https://h.test/admin/**", "h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"deny path rule alone", "!*_https://h.test/admin/**", "h.test:443", Deny, ReasonHostNotListed, 0},
	{"raw does not lift a path rule", "raw:h.test:443 GET_https://h.test/v1/**", "h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"raw does not lift a deny path rule", "raw:h.test:443 !*_https://h.test/v1/**", "h.test:443", Intercept, ReasonAllowed, WireTLS},
	{"path rule for an address", "GET_https://10.0.0.1/v1/**", "10.0.0.1:443", Intercept, ReasonAllowed, WireTLS},

	{"DNS", "h.test:22", "h.test:0", Allow, ReasonAllowed, 0},
	{"DNS, path rule", "GET_https://h.test/v1/**", "h.test:0", Allow, ReasonAllowed, 0},
	{"DNS, nothing", "h.test:22", "other.test:0", Deny, ReasonHostNotListed, 0},
	{"DNS, some ports denied", "h.test !h.test:80", "h.test:0", Allow, ReasonAllowed, 0},
	{"DNS, all allowed ports denied, in two rules", "h.test .y.test:* !h.test:80 !h.test:440-450", "h.test:0", Deny, ReasonDeniedByRule, 0},
	{"DNS, denied whole", "*.test !h.test", "h.test:0", Deny, ReasonDeniedByRule, 0},
	{"DNS, deny path rules hide nothing", "h.test !*_https://h.test/**", "h.test:0", Allow, ReasonAllowed, 0},
	{"hosts entry alone allows nothing", "=h.test=127.0.0.1", "h.test:443", Deny, ReasonHostNotListed, 0},
}

func TestDecideName(t *testing.T) {
	for _, tt := range nameCases {
		t.Run(tt.name, func(t *testing.T) {
			rules := strings.Fields(tt.rules)
			for i := range rules {
				rules[i] = strings.Replace(rules[i], "_", " ", 1)
			}
			p := compileRules(t, rules...)
			h, port := authority(t, tt.to)
			d := p.Decide(Request{Host: h, Port: port})
			if d.Verdict != tt.verdict || d.Reason != tt.reason || d.Needs != tt.needs {
				t.Errorf("%s = %s %s needs %d, want %s %s needs %d", tt.to, d.Verdict, d.Reason, d.Needs, tt.verdict, tt.reason, tt.needs)
			}
			if d.Allowed() && d.Rule == nil {
				t.Error("allowed without a rule")
			}
		})
	}
}

func TestDecideNothing(t *testing.T) {
	h := host(t, "h.test")
	var none *Policy
	for name, p := range map[string]*Policy{"nil": none, "zero": {}, "zero Current": new(Current).Load()} {
		if d := p.Decide(Request{Host: h, Port: 443}); d != (Decision{}) || d.Allowed() {
			t.Errorf("%s policy: %+v", name, d)
		}
		if d := p.DecideAddrs(Request{Host: h, Port: 443}, []netip.Addr{netip.MustParseAddr("8.8.8.8")}); d.Allowed() {
			t.Errorf("%s policy: %+v", name, d)
		}
	}
	p := compileRules(t, "0.0.0.0/0:*", "h.test")
	if d := p.Decide(Request{Port: 443}); d.Allowed() || d.Reason != ReasonMalformed {
		t.Errorf("no host: %+v", d)
	}
	if d := p.Decide(Request{Host: h, Wire: WireTLS, SNI: h}); d.Allowed() {
		t.Errorf("a DNS question with a wire: %+v", d)
	}
	empty, err := Compile()
	if err != nil {
		t.Fatal(err)
	}
	if d := empty.Decide(Request{Host: h, Port: 443}); d.Allowed() || d.Reason != ReasonHostNotListed {
		t.Errorf("empty policy: %+v", d)
	}
	if none.Static(h) != nil || none.Digest() != "" || none.Audit() || none.Ports() != nil || none.Secrets() != nil {
		t.Error("a nil policy holds something")
	}
}

func TestDecideAddr(t *testing.T) {
	for _, tt := range []struct {
		name, rules, to, addrs string
		reason                 Reason
	}{
		{"public", "h.test", "h.test:443", "8.8.8.8", ReasonAllowed},
		{"public, several", "h.test", "h.test:443", "8.8.8.8 2606:4700::1", ReasonAllowed},
		{"private", "h.test", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"one private of two", "h.test", "h.test:443", "8.8.8.8 10.0.0.1", ReasonIPProhibited},
		{"loopback in a mapped costume", "h.test", "h.test:443", "::ffff:127.0.0.1", ReasonIPProhibited},
		{"metadata through NAT64", "h.test", "h.test:443", "64:ff9b::a9fe:a9fe", ReasonIPProhibited},
		{"compatible", "h.test", "h.test:443", "::8.8.8.8", ReasonIPProhibited},
		{"class E", "h.test", "h.test:443", "240.0.0.1", ReasonIPProhibited},
		{"link-local with a zone", "h.test", "h.test:443", "fe80::1%lo", ReasonIPProhibited},
		{"named by an address rule", "h.test 10.0.0.0/8", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"named for another port", "h.test 10.0.0.0/8:5432", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"a wide rule names nothing private", "h.test 0.0.0.0/0:*", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"a path rule about an address", "h.test GET_https://10.0.0.1/**", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"address denied", "h.test !8.8.8.0/24", "h.test:443", "8.8.8.8", ReasonDeniedByRule},
		{"address denied for another port", "h.test !8.8.8.0/24:53", "h.test:443", "8.8.8.8", ReasonAllowed},
		{"one of two denied", "h.test !8.8.8.0/24", "h.test:443", "1.1.1.1 8.8.8.8", ReasonDeniedByRule},
		{"deny beats a hosts entry", "h.test =h.test=10.0.0.1 !10.0.0.0/8", "h.test:443", "10.0.0.1", ReasonDeniedByRule},
		{"hosts entry", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.1", ReasonAllowed},
		{"hosts entry, another address", "h.test =h.test=10.0.0.1", "h.test:443", "10.0.0.2", ReasonIPProhibited},
		{"hosts entry of another name", "h.test g.test =g.test=10.0.0.1", "h.test:443", "10.0.0.1", ReasonIPProhibited},
		{"no addresses", "h.test", "h.test:443", "", ReasonNotFound},
		{"no addresses, denied", "", "h.test:443", "", ReasonHostNotListed},
		{"literal, itself", "10.0.0.0/8", "10.0.0.1:443", "10.0.0.1", ReasonAllowed},
		{"literal, another", "10.0.0.0/8", "10.0.0.1:443", "10.0.0.2", ReasonIPProhibited},
		{"literal, itself mapped", "10.0.0.0/8", "10.0.0.1:443", "::ffff:10.0.0.1", ReasonAllowed},
		{"DNS answer, private", "h.test", "h.test:0", "10.0.0.1", ReasonIPProhibited},
		{"DNS answer, named for some port", "h.test:5432 10.0.0.0/8:5432", "h.test:0", "10.0.0.1", ReasonAllowed},
		{"DNS answer, address denied whole", "h.test !8.8.8.8", "h.test:0", "8.8.8.8", ReasonDeniedByRule},
		{"DNS answer, one port of the address denied", "h.test !8.8.8.8:53", "h.test:0", "8.8.8.8", ReasonAllowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := strings.Fields(tt.rules)
			for i := range rules {
				rules[i] = strings.Replace(rules[i], "_", " ", 1)
			}
			p := compileRules(t, rules...)
			h, port := authority(t, tt.to)
			var addrs []netip.Addr
			for _, a := range strings.Fields(tt.addrs) {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			d := p.DecideAddrs(Request{Host: h, Port: port}, addrs)
			if d.Reason != tt.reason || d.Allowed() != (tt.reason == ReasonAllowed) {
				t.Errorf("got %s %s, want %s", d.Verdict, d.Reason, tt.reason)
			}
		})
	}
	p := compileRules(t, "h.test")
	if d := p.DecideAddrs(Request{Host: host(t, "h.test"), Port: 443}, make([]netip.Addr, 1)); d.Allowed() {
		t.Error("the invalid address passes")
	}
}

// Methods are case-sensitive (RFC 9110 section 9.1), but not every origin minds:
// what an allow rule does not take for GET, a deny rule does.
func TestMethodCase(t *testing.T) {
	p := compileRules(t, "a.test", "GET https://b.test/**", "!GET https://a.test/admin/**")
	for _, tt := range []struct {
		host, method string
		want         Reason
	}{
		{"a.test", "GET", ReasonDeniedByRule},
		{"a.test", "get", ReasonDeniedByRule},
		{"a.test", "Get", ReasonDeniedByRule},
		{"a.test", "POST", ReasonAllowed},
		{"b.test", "GET", ReasonAllowed},
		{"b.test", "get", ReasonMethodNotListed},
	} {
		if d := p.Decide(Request{Host: host(t, tt.host), Port: 443, Method: tt.method, Path: "/admin/x"}); d.Reason != tt.want {
			t.Errorf("%s https://%s: %s, want %s", tt.method, tt.host, d.Reason, tt.want)
		}
	}
}

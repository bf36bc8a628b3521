package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// slowMatcher is the policy as the documentation tells it: every rule is
// looked at in turn, by text, and nothing is indexed.
type slowMatcher struct{ allow, deny []slowRule }

type slowRule struct {
	text    string
	raw     bool
	host    string // with its * or dot
	ports   string // "" when none are written
	methods string // "" for host rules
	path    string
	deny    bool
}

func slowParse(text string, deny bool) slowRule {
	r := slowRule{text: text, deny: deny}
	if method, url, ok := strings.Cut(text, " https://"); ok {
		i := strings.Index(url, "/")
		r.methods, text, r.path = method, url[:i], url[i:]
		if !strings.Contains(text, ":") {
			r.ports = "443"
		}
	}
	text, r.raw = strings.CutPrefix(text, "raw:")
	if strings.HasPrefix(text, "[") {
		end := strings.Index(text, "]")
		r.host = text[1:end]
		text = text[end+1:]
		if text != "" {
			r.ports = text[1:]
		}
		return r
	}
	var ports string
	r.host, ports, _ = strings.Cut(text, ":")
	if ports != "" {
		r.ports = ports
	}
	return r
}

func (r slowRule) hasPort(port uint16) bool {
	list := r.ports
	if list == "" {
		list = "80,443"
		if r.deny {
			list = "*"
		}
	}
	for item := range strings.SplitSeq(list, ",") {
		var lo, hi uint16
		switch n, _ := fmt.Sscanf(item, "%d-%d", &lo, &hi); {
		case item == "*":
			lo, hi = 0, 65535
		case n == 1:
			hi = lo
		}
		if lo <= port && port <= hi {
			return true
		}
	}
	return false
}

func (r slowRule) hasHost(h Host) bool {
	if pre, err := netip.ParsePrefix(r.host); err == nil {
		return h.Addr().IsValid() && pre.Contains(h.Addr())
	}
	if a, err := netip.ParseAddr(r.host); err == nil {
		return h.Addr() == a
	}
	switch name := h.Name(); {
	case name == "":
		return false
	case strings.HasPrefix(r.host, "*."):
		return strings.HasSuffix(name, r.host[1:])
	case strings.HasPrefix(r.host, "."):
		return name == r.host[1:] || strings.HasSuffix(name, r.host)
	default:
		return name == r.host
	}
}

func (r slowRule) hasMethod(m string) bool {
	return r.methods == "*" || strings.Contains(","+r.methods+",", ","+m+",")
}

// hasPath is for plain paths only: the generator makes no others.
func (r slowRule) hasPath(path string) bool {
	return slowPath(strings.Split(r.path, "/")[1:], strings.Split(path, "/")[1:])
}

func slowPath(pat, path []string) bool {
	if len(pat) == 0 {
		return len(path) == 0
	}
	if pat[0] == "**" {
		for i := 0; i <= len(path); i++ {
			if slowPath(pat[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && (pat[0] == path[0] || pat[0] == "*" && path[0] != "") && slowPath(pat[1:], path[1:])
}

func (m *slowMatcher) decide(r Request) (Verdict, Reason) {
	paths := false
	for _, d := range m.deny {
		if d.hasHost(r.Host) && d.hasPort(r.Port) {
			if d.methods == "" {
				return Deny, ReasonDeniedByRule
			}
			paths = true
		}
	}
	var whole, raw, listed, byPath bool
	for _, a := range m.allow {
		switch {
		case !a.hasHost(r.Host):
		case !a.hasPort(r.Port):
			listed = true
		case a.methods != "":
			byPath, paths = true, true
		case a.raw:
			raw = true
		default:
			whole = true
		}
	}
	special := r.Host.Addr().IsValid() && ClassifyAddr(r.Host.Addr()) != ""
	switch {
	case whole || raw || byPath:
	case listed:
		return Deny, ReasonPortNotListed
	case special:
		return Deny, ReasonIPProhibited
	default:
		return Deny, ReasonHostNotListed
	}
	if special && !m.names(r.Host.Addr(), r.Port, true) {
		return Deny, ReasonIPProhibited
	}
	if r.Addr.IsValid() && r.Host.Name() != "" {
		for _, d := range m.deny {
			if d.methods == "" && d.hasHost(HostFromAddr(r.Addr)) && d.hasPort(r.Port) {
				return Deny, ReasonDeniedByRule
			}
		}
		if ClassifyAddr(r.Addr) != "" && !m.names(r.Addr, r.Port, false) {
			return Deny, ReasonIPProhibited
		}
	}
	if reason := slowWire(r, paths, raw); reason != ReasonAllowed {
		return Deny, reason
	}
	if !paths {
		return Allow, ReasonAllowed
	}
	if r.Method == "" {
		return Intercept, ReasonAllowed
	}
	return m.request(r, whole || raw)
}

func (m *slowMatcher) names(a netip.Addr, port uint16, paths bool) bool {
	for _, r := range m.allow {
		// The generator's only wide prefix is 0.0.0.0/0.
		if r.host != "0.0.0.0/0" && r.hasHost(HostFromAddr(a)) && r.hasPort(port) && (paths || r.methods == "") {
			return true
		}
	}
	return false
}

func slowWire(r Request, paths, raw bool) Reason {
	tls := paths || r.Port == 443 && !raw
	http := r.Port == 80 && !raw
	sniFine := r.Host.Name() != "" && r.SNI == r.Host || r.Host.Name() == "" && r.SNI.IsZero()
	hostFine := r.HTTPHost == r.Host && (r.HTTPPort == 0 || r.HTTPPort == r.Port)
	switch {
	case r.Wire == WireUnseen:
	case r.Wire == WireBad:
		return ReasonMalformed
	case r.Wire == WireTLS && r.Method != "" && !hostFine:
		return ReasonHostMismatch
	case raw && !paths:
	case tls && r.Wire != WireTLS:
		return ReasonNotTLS
	case !tls && http && r.Wire != WireHTTP:
		return ReasonNotHTTP
	case r.Wire == WireTLS && !sniFine:
		return ReasonSNIMismatch
	case r.Wire == WireHTTP && (r.HTTPHost != r.Host && (http || !r.HTTPHost.IsZero()) || r.HTTPPort != 0 && r.HTTPPort != r.Port):
		return ReasonHostMismatch
	}
	return ReasonAllowed
}

func (m *slowMatcher) request(r Request, whole bool) (Verdict, Reason) {
	for _, d := range m.deny {
		if d.methods != "" && d.hasHost(r.Host) && d.hasPort(r.Port) && d.hasMethod(r.Method) && d.hasPath(r.Path) {
			return Deny, ReasonDeniedByRule
		}
	}
	if whole {
		return Allow, ReasonAllowed
	}
	reason := ReasonPathNotListed
	for _, a := range m.allow {
		if a.methods != "" && a.hasHost(r.Host) && a.hasPort(r.Port) && a.hasPath(r.Path) {
			if a.hasMethod(r.Method) {
				return Allow, ReasonAllowed
			}
			reason = ReasonMethodNotListed
		}
	}
	return Deny, reason
}

// anyPort tries every port there is.
func (m *slowMatcher) anyPort(h Host) bool {
	for port := 1; port <= 65535; port++ {
		if v, _ := m.decide(Request{Host: h, Port: uint16(port)}); v != Deny {
			return true
		}
	}
	return false
}

type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) name() string {
	return g.pick("", "a.", "b.", "a.b.", "xa.") + g.pick("x.test", "y.test", "ax.test")
}

func (g generator) addr() string {
	return g.pick("10.0.0.1", "10.0.0.2", "10.1.0.1", "127.0.0.1", "8.8.8.8", "8.8.4.4", "192.168.1.1", "fd00::1", "2606:4700::1", "::1")
}

func (g generator) rule(deny bool) string {
	ports := g.pick("", "", "", ":443", ":80", ":22,443", ":*", ":80-500", ":1-79", ":22", ":8080")
	if g.IntN(3) == 0 {
		switch host := g.pick(g.addr(), "10.0.0.0/8", "10.0.0.0/31", "0.0.0.0/0", "8.8.0.0/16", "fd00::/8", "2606:4700::/32", "127.0.0.0/8"); {
		case strings.Contains(host, ":"):
			return "[" + host + "]" + ports
		default:
			return host + ports
		}
	}
	host := g.pick("", "", "*.", ".") + g.name()
	switch {
	case g.IntN(4) == 0:
		return g.pick("GET", "POST", "GET,POST", "*") + " https://" + host + g.pick("", "", ":8080") +
			g.pick("/**", "/a/**", "/a", "/a/*", "/*/b", "/a/**/b", "/**/b")
	case g.IntN(6) == 0 && !deny && ports != "":
		return "raw:" + host + ports
	}
	return host + ports
}

func (g generator) request(t *testing.T) Request {
	r := Request{Host: host(t, g.pick(g.name(), g.name(), g.addr()))}
	r.Port = []uint16{443, 443, 80, 22, 8080, 79, 81, 500, 501}[g.IntN(9)]
	if r.Host.Name() != "" && g.IntN(3) == 0 {
		r.Addr = netip.MustParseAddr(g.addr())
	}
	if g.IntN(2) == 0 {
		r.Wire = Wire(g.IntN(5))
		server := []Host{r.Host, r.Host, {}, host(t, g.name()), host(t, g.addr())}[g.IntN(5)]
		r.SNI, r.HTTPHost = server, server
		if g.IntN(4) == 0 || r.Host.Name() == "" {
			r.HTTPHost = r.Host // inside TLS the two may differ
		}
		r.HTTPPort = []uint16{0, 0, r.Port, 1}[g.IntN(4)]
	}
	if g.IntN(2) == 0 {
		r.Method = g.pick("GET", "POST", "PUT")
		r.Path = g.pick("/a", "/a/b", "/b", "/a/c/b", "/a/x/y", "/")
	}
	return r
}

// TestAgainstSlowMatcher compares Decide with the slow matcher over random
// policies and requests. The seed is fixed: a failure repeats.
func TestAgainstSlowMatcher(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(2, 2026))}
	verdicts := make(map[Reason]int)
	intercepts := 0
	for range 800 {
		// Two documents: a deny in another document may cover an allow rule.
		allow, deny := &Document{}, &Document{}
		var slow slowMatcher
		for range g.IntN(8) {
			text := g.rule(false)
			allow.Allow = append(allow.Allow, Entry{Text: text})
			slow.allow = append(slow.allow, slowParse(text, false))
		}
		for range g.IntN(3) {
			text := g.rule(true)
			deny.Deny = append(deny.Deny, Entry{Text: text})
			slow.deny = append(slow.deny, slowParse(text, true))
		}
		p, err := Compile(allow, deny)
		if err != nil {
			t.Fatal(err)
		}
		for range 150 {
			r := g.request(t)
			got := p.Decide(r)
			verdict, reason := slow.decide(r)
			if got.Verdict != verdict || got.Reason != reason {
				t.Fatalf("allow %q deny %q\n%+v\ngot %s %s, the slow matcher says %s %s",
					allow.Allow, deny.Deny, r, got.Verdict, got.Reason, verdict, reason)
			}
			verdicts[reason]++
			if verdict == Intercept {
				intercepts++
			}
		}
		if g.IntN(20) == 0 {
			h := host(t, g.pick(g.name(), g.addr()))
			if got, want := p.Decide(Request{Host: h}).Allowed(), slow.anyPort(h); got != want {
				t.Fatalf("allow %q deny %q: any port of %s = %t, trying every port says %t", allow.Allow, deny.Deny, h, got, want)
			}
		}
	}
	for r := ReasonAllowed; r <= ReasonMalformed; r++ {
		if verdicts[r] == 0 {
			t.Errorf("no request ended in %s: the generator misses it", r)
		}
	}
	if intercepts == 0 {
		t.Error("no request was intercepted: the generator misses it")
	}
}

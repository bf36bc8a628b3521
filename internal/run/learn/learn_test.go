package learn

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
)

// hostOf reads name; the zero Host when it is not a host.
func hostOf(name string) policy.Host {
	h, _ := policy.ParseHost(name)
	return h
}

func connected(host string, port uint16, reason policy.Reason, edit ...func(*event.Connection)) *event.Connection {
	e := &event.Connection{Host: hostOf(host), Port: port, Verdict: event.Verdict{Reason: reason}}
	if reason == policy.ReasonAllowed {
		e.Decision = event.Allowed
	}
	for _, f := range edit {
		f(e)
	}
	return e
}

func asked(host string, decision event.Decision, reason policy.Reason) *event.Query {
	return &event.Query{Host: hostOf(host), Verdict: event.Verdict{Decision: decision, Reason: reason}}
}

func learnFrom(t *testing.T, events ...event.Body) string {
	t.Helper()
	var r Recorder
	for _, e := range events {
		if err := r.Emit(event.Event{Body: e}); err != nil {
			t.Fatal(err)
		}
	}
	return string(r.Text())
}

func rulesOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if rule, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			out = append(out, strings.Trim(rule, `"`))
		}
	}
	return out
}

func TestRules(t *testing.T) {
	req := func(method, path string) func(*event.Connection) {
		return func(e *event.Connection) { e.Method, e.Path = method, path }
	}
	rule := func(s string) func(*event.Connection) {
		return func(e *event.Connection) { e.Rule = &policy.Rule{Text: s} }
	}
	for _, tt := range []struct {
		name string
		in   []event.Body
		want string
	}{
		{"nothing", nil, ""},
		{"one port", []event.Body{connected("a.test", 443, policy.ReasonHostNotListed)}, "a.test:443"},
		{"both web ports", []event.Body{connected("a.test", 443, policy.ReasonHostNotListed), connected("a.test", 80, policy.ReasonAllowed)}, "a.test"},
		{"joined ports", []event.Body{connected("a.test", 443, policy.ReasonAllowed), connected("a.test", 22, policy.ReasonPortNotListed), connected("a.test", 22, policy.ReasonPortNotListed)}, "a.test:22,443"},
		{"wildcards are not learned", []event.Body{connected("a.b.test", 443, policy.ReasonAllowed, rule("*.b.test"))}, "a.b.test:443"},
		{"raw by rule", []event.Body{connected("a.test", 443, policy.ReasonAllowed, rule("raw:a.test:443"))}, "raw:a.test:443"},
		{"raw by need", []event.Body{connected("a.test", 443, policy.ReasonAllowed), connected("a.test", 443, policy.ReasonNotTLS)}, "raw:a.test:443"},
		{"a request", []event.Body{
			connected("a.test", 443, policy.ReasonAllowed, rule("GET https://a.test/**")),
			connected("a.test", 443, policy.ReasonAllowed, rule("GET https://a.test/**"), req("GET", "/x")),
			connected("a.test", 443, policy.ReasonPathNotListed, req("POST", "/y")),
		}, "GET https://a.test/x|POST https://a.test/y"},
		{"no request", []event.Body{connected("a.test", 443, policy.ReasonAllowed, rule("GET https://a.test/**"))}, "GET https://a.test/**"},
		{"asked only", []event.Body{asked("a.test", event.Blocked, policy.ReasonHostNotListed)}, ""}, // which port is not known
		{"asked and connected", []event.Body{
			asked("a.test", event.Blocked, policy.ReasonHostNotListed), connected("a.test", 22, policy.ReasonHostNotListed),
		}, "a.test:22"},
		{"asked and allowed", []event.Body{asked("a.test", event.Allowed, policy.ReasonAllowed)}, ""},
		{"the origin failed", []event.Body{connected("a.test", 443, policy.ReasonRefused)}, "a.test:443"},
		{"IPv6", []event.Body{connected("2600::1", 443, policy.ReasonHostNotListed)}, "[2600::1]:443"},
		{"not learnable", []event.Body{
			connected("a.test", 443, policy.ReasonDeniedByRule), connected("b.test", 443, policy.ReasonSNIMismatch), connected("10.0.0.1", 80, policy.ReasonIPProhibited),
			connected("127.0.0.1", 80, policy.ReasonHostNotListed), connected("c.test", 443, policy.ReasonMalformed), connected("d.test", 443, policy.ReasonOverload),
			connected("203.0.113.1", 53, policy.ReasonProtocol), connected("bad host", 443, policy.ReasonHostNotListed),
			connected("e.test", 443, policy.ReasonCeiling),
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := learnFrom(t, tt.in...)
			if got := strings.Join(rulesOf(text), "|"); got != tt.want {
				t.Errorf("learned %q, want %q\n%s", got, tt.want, text)
			}
			if _, err := policy.ParseFile("p", []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A program chooses its paths and methods: none of them may become a wildcard,
// or text that no policy file can hold.
func TestRequestsThatNoRuleCanName(t *testing.T) {
	for _, tt := range []struct{ name, method, path string }{
		{"everything", "GET", "/**"},
		{"a segment", "GET", "/repos/*"},
		{"a star in a word", "GET", "/a*b"},
		{"any method", "*", "/x"},
		{"small letters", "get", "/x"},
		{"longer than a rule", "GET", "/" + strings.Repeat("x", 5000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r Recorder
			for _, reason := range []policy.Reason{policy.ReasonAllowed, policy.ReasonPathNotListed} {
				e := connected("a.test", 443, reason)
				e.Rule, e.Method, e.Path = &policy.Rule{Text: "GET https://a.test/y/**"}, tt.method, tt.path
				if err := r.Emit(event.Event{Body: e}); err != nil {
					t.Fatal(err)
				}
			}
			text := string(r.Text())
			if got := rulesOf(text); len(got) != 0 {
				t.Errorf("learned %q", got)
			}
			if !strings.Contains(text, "#   - ") {
				t.Errorf("the request is not mentioned:\n%s", text)
			}
			if err := r.WriteFile(filepath.Join(t.TempDir(), "p.yaml")); err != nil {
				t.Error(err)
			}
		})
	}
}

// What was seen passes under the learned policy; its neighbours do not.
func TestLearnedPolicyFits(t *testing.T) {
	var r Recorder
	addr := netip.MustParseAddr("10.1.2.3")
	r.Static = func(h policy.Host) []netip.Addr {
		if h.Name() == "static.test" {
			return []netip.Addr{addr}
		}
		return nil
	}
	for i, reason := range []policy.Reason{policy.ReasonHostNotListed, policy.ReasonAllowed, policy.ReasonPortNotListed} {
		if err := r.Emit(event.Event{Body: connected(fmt.Sprintf("h%d.test", i), uint16(440+i), reason)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Emit(event.Event{Body: connected("static.test", 5432, policy.ReasonHostNotListed)}); err != nil {
		t.Fatal(err)
	}
	doc, err := policy.ParseFile("p", r.Text())
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Text())
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name string, port uint16, a netip.Addr) bool {
		h, err := policy.ParseHost(name)
		if err != nil {
			t.Fatal(err)
		}
		return p.Decide(policy.Request{Host: h, Port: port, Addr: a}).Allowed()
	}
	for i := range 3 {
		name, port := fmt.Sprintf("h%d.test", i), uint16(440+i)
		if !ask(name, port, netip.Addr{}) {
			t.Errorf("%s:%d is denied", name, port)
		}
		if ask(name, port+1, netip.Addr{}) || ask("x."+name, port, netip.Addr{}) {
			t.Errorf("%s: more than was used is allowed", name)
		}
	}
	if !ask("static.test", 5432, addr) || ask("h0.test", 440, addr) {
		t.Error("fixed addresses were not learned for their name alone")
	}
}

func TestDoubtsAreComments(t *testing.T) {
	text := learnFrom(t,
		connected("10.0.0.1", 80, policy.ReasonIPProhibited),
		connected("rebind.test", 80, policy.ReasonIPProhibited, func(e *event.Connection) { e.Addr = netip.MustParseAddrPort("169.254.169.254:80") }),
		connected("b.test", 443, policy.ReasonSNIMismatch, func(e *event.Connection) { e.Server = hostOf("other.test") }),
		asked("db.test", event.Blocked, policy.ReasonHostNotListed),
		connected("c.test", 443, policy.ReasonDeniedByRule, func(e *event.Connection) {
			e.Rule = &policy.Rule{Text: "evil\n  - everything.test"}
		}))
	for _, want := range []string{`#   - "10.0.0.1:80"`, `rebind.test:80   # a special-purpose address; it needs, under hosts:  rebind.test: "169.254.169.254"`, "named another host, other.test,", "#   - db.test:PORT   # only its name was asked for", "everything.test"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "everything") && !strings.HasPrefix(line, "#") {
			t.Errorf("a client wrote a line of the policy: %s", line)
		}
	}
}

func TestBound(t *testing.T) {
	var r Recorder
	for i := range maxFacts + 10 {
		if err := r.Emit(event.Event{Body: connected(fmt.Sprintf("h%d.test", i), 443, policy.ReasonHostNotListed)}); err != nil {
			t.Fatal(err)
		}
	}
	if text := r.Text(); len(r.list) != maxFacts || !strings.Contains(string(text), "NOT COMPLETE") {
		t.Errorf("%d facts", len(r.list))
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "p.yaml")
	var r Recorder
	if err := r.WriteFile(name); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFile(name); err == nil {
		t.Error("an existing file was replaced")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFile(link); err == nil {
		t.Error("a link was followed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

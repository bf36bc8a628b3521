package policy

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func digest(t *testing.T, docs ...*Document) string {
	t.Helper()
	p, err := Compile(docs...)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Digest()
	if !strings.HasPrefix(d, "sha256:") || len(d) != 7+64 || d != p.Digest() {
		t.Fatalf("digest %q", d)
	}
	return d
}

func TestDigestSame(t *testing.T) {
	want := digest(t, doc("a.test", "b.test:22,443", "GET,POST https://c.test/x/**", "10.0.0.0/8", "!d.test", "=h.test=10.0.0.1,10.0.0.2"))
	for name, d := range map[string][]*Document{
		"order":     {doc("10.0.0.0/8", "b.test:22,443", "!d.test", "a.test", "GET,POST https://c.test/x/**", "=h.test=10.0.0.1,10.0.0.2")},
		"spelling":  {doc("A.TEST.", "b.test:443,22", "POST,GET https://c.test:443/x/**", "10.0.0.0/8:80,443", "!d.test:*", "=h.test=10.0.0.2,10.0.0.1")},
		"twice":     {doc("a.test", "a.test", "b.test:22,443", "GET,POST https://c.test/x/**", "10.0.0.0/8", "!d.test", "=h.test=10.0.0.1,10.0.0.2")},
		"documents": {doc("a.test", "!d.test"), doc("b.test:22,443", "GET,POST https://c.test/x/**", "10.0.0.0/8", "=h.test=10.0.0.1,10.0.0.2")},
	} {
		if got := digest(t, d...); got != want {
			t.Errorf("%s changes the digest", name)
		}
	}
}

func TestDigestDiffers(t *testing.T) {
	secret := func(env, header, h string) *Document {
		return &Document{Secrets: []Secret{{Env: env, Header: header, Hosts: []Host{host(t, h)}}}}
	}
	base := doc("a.test", "b.test")
	seen := map[string]string{"": ""}
	for name, extra := range map[string]*Document{
		"base":          {},
		"a rule":        doc("c.test"),
		"a suffix":      doc("*.c.test"),
		"a tree":        doc(".c.test"),
		"a port":        doc("c.test:22"),
		"raw":           doc("raw:c.test:22"),
		"a deny rule":   doc("!c.test"),
		"a method":      doc("GET https://c.test/**"),
		"other method":  doc("POST https://c.test/**"),
		"other path":    doc("GET https://c.test/v1/**"),
		"an address":    doc("10.0.0.1"),
		"a prefix":      doc("10.0.0.0/31"),
		"a hosts entry": doc("=a.test=10.0.0.1"),
		"its address":   doc("=a.test=10.0.0.2"),
		"dns mode":      {DNS: DNS{Mode: DNSForward}},
		"an upstream":   {DNS: DNS{Upstreams: []Entry{{Text: "1.1.1.1"}}}},
		"a limit":       {Limits: Limits{Connections: 1}},
		"other limit":   {Limits: Limits{ConnectionsPerClient: 1}},
		"a hello limit": {Limits: Limits{HelloBytes: 1}},
		"audit":         {Audit: true},
		"a secret":      secret("A", "X", "a.test"),
		"its variable":  secret("B", "X", "a.test"),
		"its header":    secret("A", "Y", "a.test"),
		"its host":      secret("A", "X", "b.test"),
	} {
		d := digest(t, base, extra)
		if other, dup := seen[d]; dup {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	if digest(t, base) != digest(t, base, &Document{DNS: DNS{Mode: DNSSynthetic}}) {
		t.Error("saying the default changes the digest")
	}
}

func TestSuggest(t *testing.T) {
	rules := []string{"h.test:22", "GET https://p.test/v1/**", "web.test", "raw:x.test:9", "!bad.test", "8.8.8.8:53"}
	for _, tt := range []struct{ to, addr, wire, server, request, want string }{
		{"new.test:443", "", "", "", "", "new.test"},
		{"new.test:80", "", "", "", "", "new.test"},
		{"new.test:22", "", "", "", "", "new.test:22"},
		{"new.test:0", "", "", "", "", "new.test"},
		{"h.test:443", "", "", "", "", "h.test:443"},
		{"bad.test:443", "", "", "", "", ""},
		{"10.0.0.5:5432", "", "", "", "", "10.0.0.5:5432"},
		{"[fd00::1]:5432", "", "", "", "", "[fd00::1]:5432"},
		{"[2606:4700::1]:443", "", "", "", "", "2606:4700::1"},
		{"0.0.0.0:443", "", "", "", "", ""},
		{"web.test:443", "10.0.0.5", "", "", "", "10.0.0.5:443"},
		{"web.test:443", "", "other", "", "", "raw:web.test:443"},
		{"web.test:80", "", "other", "", "", "raw:web.test:80"},
		{"web.test:443", "", "tls", "", "", "raw:web.test:443"},
		{"web.test:443", "", "tls", "evil.test", "", ""},
		{"web.test:80", "", "http", "evil.test", "", ""},
		{"web.test:443", "", "bad", "", "", ""},
		{"p.test:443", "", "other", "", "", ""},
		{"p.test:443", "", "tls", "p.test", "POST /v1/x", "POST https://p.test/v1/x"},
		{"p.test:443", "", "tls", "p.test", "GET /v2", "GET https://p.test/v2"},
		{"p.test:443", "", "tls", "p.test", "GET /v2/a*", ""},
		{"p.test:443", "", "tls", "p.test", "* /v2", ""},
		{"p.test:443", "", "tls", "p.test", "GET /v1/../v2", ""},
		{"web.test:443", "", "", "", "", ""}, // allowed
	} {
		p := compileRules(t, rules...)
		h, port := authority(t, tt.to)
		r := Request{Host: h, Port: port, SNI: host(t, tt.server), HTTPHost: host(t, tt.server)}
		if tt.addr != "" {
			r.Addr = netip.MustParseAddr(tt.addr)
		}
		r.Wire = map[string]Wire{"": WireUnseen, "tls": WireTLS, "http": WireHTTP, "other": WireOther, "bad": WireBad}[tt.wire]
		r.Method, r.Path, _ = strings.Cut(tt.request, " ")
		got := p.Decide(r).Suggest(r)
		if got != tt.want {
			t.Errorf("Suggest(%s %s %s %s %s) = %q, want %q", tt.to, tt.addr, tt.wire, tt.server, tt.request, got, tt.want)
		}
		if got == "" {
			continue
		}
		if d := compileRules(t, append(slices.Clone(rules), got)...).Decide(r); !d.Allowed() {
			t.Errorf("%s: the suggested rule %q does not allow it: %s", tt.to, got, d.Reason)
		}
	}
}

func TestReasonTable(t *testing.T) {
	if int(ReasonInternal)+1 != len(reasonTable) {
		t.Fatalf("%d reasons, %d rows", int(ReasonInternal)+1, len(reasonTable))
	}
	seen := make(map[string]bool)
	for r := Reason(0); int(r) < len(reasonTable); r++ {
		word := r.String()
		if word == "" || seen[word] || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("reason %d has the word %q", r, word)
		}
		seen[word] = true
		if r.Class() == ClassBug && r != ReasonInternal || r.Class() == ClassNone && r != ReasonAllowed {
			t.Errorf("%s is of class %s", r, r.Class())
		}
	}
	if r := Reason(255); r.String() != "unknown_reason" || r.Class() != ClassBug {
		t.Errorf("an unknown reason is %s, %s", r, r.Class())
	}
	for v, want := range map[Verdict]string{Deny: "deny", Allow: "allow", Intercept: "intercept", 99: "deny"} {
		if v.String() != want || (Decision{Verdict: v}).Allowed() != (want != "deny") {
			t.Errorf("verdict %d is %q", v, v)
		}
	}
	classes := make(map[string]bool)
	for c := ClassBug; c <= ClassOverload; c++ {
		classes[c.String()] = true
	}
	if len(classes) != int(ClassOverload)+1 || Class(99).String() != "bug" {
		t.Errorf("classes %v", classes)
	}
}

func TestPosString(t *testing.T) {
	for want, p := range map[string]Pos{"": {}, "f.yaml:3:5": {"f.yaml", 3, 5}, "--allow #2": {"--allow", 2, 0}, "f.yaml": {File: "f.yaml"}} {
		if got := p.String(); got != want {
			t.Errorf("%#v = %q, want %q", p, got, want)
		}
	}
}

var checkedAt = regexp.MustCompile(`(?m)^# Checked: \d{4}-\d{2}-\d{2}\.$`)

// A preset to read with does not write.
func TestReadPresets(t *testing.T) {
	p := compileRules(t, "@github:read", "@npm:read", "@pypi:read")
	for _, c := range []struct {
		method, host, path string
		want               bool
	}{
		{"GET", "github.com", "/o/r.git/info/refs", true},
		{"POST", "github.com", "/o/r.git/git-upload-pack", true},
		{"POST", "github.com", "/o/r.git/git-receive-pack", false},
		{"POST", "github.com", "/o/r.git/info/lfs/objects/batch", false},
		{"POST", "github.com", "/o/r/../r/git-upload-pack", false},
		{"POST", "github.com", "/login/oauth/git-upload-pack", true}, // no such repository
		{"GET", "api.github.com", "/repos/o/r", true},
		{"POST", "api.github.com", "/graphql", false},
		{"PATCH", "api.github.com", "/gists/1", false},
		{"GET", "codeload.github.com", "/o/r/tar.gz/main", true},
		{"GET", "registry.npmjs.org", "/left-pad", true},
		{"PUT", "registry.npmjs.org", "/left-pad", false},
		{"GET", "pypi.org", "/simple/requests/", true},
		{"POST", "pypi.org", "/legacy/", false},
	} {
		h, err := ParseHost(c.host)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decide(Request{Host: h, Port: 443, Method: c.method, Path: c.path})
		if d.Allowed() != c.want {
			t.Errorf("%s %s%s: allowed %t (%s), want %t", c.method, c.host, c.path, d.Allowed(), d.Reason, c.want)
		}
	}
}

func TestPresets(t *testing.T) {
	want := []string{
		"alpine", "anthropic", "azure-openai", "bedrock", "copilot", "crates", "cursor", "debian", "docker-hub", "fedora",
		"github", "github:read", "gitlab", "go", "google-ai", "huggingface", "jsr", "maven", "mistral", "npm", "npm:read", "nuget",
		"openai", "opencode", "openrouter", "packagist", "playwright", "pypi", "pypi:read", "rubygems", "ubuntu", "vertex",
	}
	if got := PresetNames(); !slices.Equal(got, want) {
		t.Fatalf("presets %q", got)
	}
	for _, name := range want {
		text, ok := PresetText(name)
		if !ok || !strings.HasPrefix(text, "# ") || !strings.Contains(text, "# Source") || !checkedAt.MatchString(text) {
			t.Errorf("%s does not say where it comes from, and when it was checked", name)
		}
		p := compileRules(t, "@"+name)
		allow, _ := p.Rules()
		if len(allow) == 0 || len(allow) > 25 {
			t.Errorf("%s has %d rules", name, len(allow))
		}
		for _, r := range allow {
			if r.Pos.File != "preset:"+name || !strings.Contains(strings.Split(text, "\n")[r.Pos.Line-1], r.Text) {
				t.Errorf("%s: %s is said to stand at %s", name, r.Text, r.Pos)
			}
		}
		// A deny rule in the same document may cut a preset down.
		if len(allow) > 0 && allow[0].Pos.Line > 0 && !strings.Contains(allow[0].Text, " ") {
			compileRules(t, "@"+name, "!"+allow[0].Text)
		}
	}
	for _, name := range []string{"", "nope", "../presets/npm", "npm.txt", "NPM", "npm.read", ":read", "npm:"} {
		if _, ok := PresetText(name); ok {
			t.Errorf("there is a preset %q", name)
		}
	}
	if _, err := Compile(doc("@npmm")); err == nil || !strings.Contains(err.Error(), "did you mean npm?") {
		t.Errorf("a mistyped preset: %v", err)
	}
	if got, _ := compileRules(t, "@npm", "@npm").Rules(); len(got) != 2 {
		t.Errorf("a preset named twice makes %d rules", len(got))
	}
}

func TestRules(t *testing.T) {
	p := compileRules(t, "b.test", "!x.test", "a.test", "!y.test")
	allow, deny := p.Rules()
	if len(allow) != 2 || allow[0].Text != "b.test" || allow[1].Index != 1 || allow[1].Deny || len(deny) != 2 || deny[1].Text != "y.test" || !deny[1].Deny {
		t.Errorf("%v %v", allow, deny)
	}
	// The first of several matching rules is the one reported.
	p = compileRules(t, "*.x.test", "a.x.test", ".x.test")
	if d := p.Decide(Request{Host: host(t, "a.x.test"), Port: 443}); d.Rule.Index != 0 {
		t.Errorf("rule %v decided", d.Rule)
	}
}

func TestCurrent(t *testing.T) {
	var c Current
	p := compileRules(t, "a.test")
	c.Store(p)
	if c.Load() != p {
		t.Error("the policy in force is another one")
	}
}

// TestOnly keeps what p forbids and knows, and lets one thing more pass.
func TestOnly(t *testing.T) {
	host := func(s string) Host {
		h, err := ParseHost(s)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base, err := Compile(&Document{
		Allow: []Entry{{Text: "a.example"}},
		Deny:  []Entry{{Text: "bad.example"}, {Text: "9.9.9.0/24"}},
		Hosts: []Entry{{Text: "db.example=10.0.0.5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := base.Only(Entry{Text: "db.example:5432"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r    Request
		want Reason
	}{
		{Request{Host: host("db.example"), Port: 5432, Addr: netip.MustParseAddr("10.0.0.5")}, ReasonAllowed},
		{Request{Host: host("db.example"), Port: 5432, Addr: netip.MustParseAddr("10.0.0.6")}, ReasonIPProhibited},
		{Request{Host: host("db.example"), Port: 5432, Addr: netip.MustParseAddr("9.9.9.9")}, ReasonDeniedByRule},
		{Request{Host: host("a.example"), Port: 443}, ReasonHostNotListed},
		{Request{Host: host("bad.example"), Port: 443}, ReasonDeniedByRule},
	} {
		if d := p.Decide(tt.r); d.Reason != tt.want {
			t.Errorf("%v: %v, want %v", tt.r, d.Reason, tt.want)
		}
	}
	if d := base.Decide(Request{Host: host("db.example"), Port: 5432}); d.Allowed() {
		t.Error("Only changed the policy it was asked of")
	}
	if p.Digest() == base.Digest() {
		t.Error("the digest does not tell them apart")
	}
	var none *Policy
	if p, err := none.Only(Entry{Text: "a.example"}); err != nil || p.Decide(Request{Host: host("a.example"), Port: 443}).Allowed() {
		t.Error("nothing became something", err)
	}
	if _, err := base.Only(Entry{Text: "a*b"}); err == nil {
		t.Error("a bad rule passed")
	}
}

func TestSpells(t *testing.T) {
	p, err := Compile(&Document{
		Allow: []Entry{{Text: "a.test"}, {Text: "*.wild.test"}, {Text: ".tree.test"}, {Text: "b.wild.test:8443"}},
		Hosts: []Entry{{Text: "pinned.wild.test=192.0.2.1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"a.test": true, "b.wild.test": true, "pinned.wild.test": true, "tree.test": true,
		"x.wild.test": false, "wild.test": false, "x.tree.test": false, "192.0.2.1": false,
	} {
		if got := p.Spells(host(t, name)); got != want {
			t.Errorf("Spells(%s) = %v", name, got)
		}
	}
	if (*Policy)(nil).Spells(host(t, "a.test")) || new(Policy).Spells(host(t, "a.test")) {
		t.Error("no policy spells a name out")
	}
}

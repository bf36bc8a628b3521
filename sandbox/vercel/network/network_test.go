package network

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"egressd/policy"
	"egressd/sandbox"
)

func entries(text string) []policy.Entry {
	var all []policy.Entry
	for i, s := range strings.Fields(text) {
		all = append(all, policy.Entry{Text: strings.ReplaceAll(s, "_", " "), Pos: policy.Pos{File: "--allow", Line: i + 1}})
	}
	return all
}

func translate(t *testing.T, d *policy.Document) (*Network, error) {
	t.Helper()
	p, err := policy.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return Translate(p, func(env string) (string, bool) { return "value of " + env, env != "NONE" })
}

func TestTranslate(t *testing.T) {
	for _, tt := range []struct{ allow, deny, want string }{
		{"", "", "[] [] []"},
		{"api.example.com", "", "[api.example.com] [] []"},
		{"API.Example.com. api.example.com", "", "[api.example.com] [] []"},
		{"*.example.com", "", "[*.example.com] [] []"},
		{".example.com b.test", "", "[example.com *.example.com b.test] [] []"},
		{"203.0.113.0/24 198.51.100.7:*", "192.0.2.0/24", "[] [203.0.113.0/24 198.51.100.7/32] [192.0.2.0/24]"},
		{"api.example.com", "other.test", "[api.example.com] [] []"},
		{"*.example.com", "example.com", "[*.example.com] [] []"},
		{"example.com", "*.example.com", "[example.com] [] []"},
	} {
		n, err := translate(t, &policy.Document{Allow: entries(tt.allow), Deny: entries(tt.deny)})
		if err != nil {
			t.Errorf("allow %q, deny %q: %v", tt.allow, tt.deny, err)
			continue
		}
		if got := fmt.Sprint(n.Names, n.AllowNets, n.DenyNets); got != tt.want || n.All || n.Denies() != (tt.allow == "") {
			t.Errorf("allow %q, deny %q: %s, want %s", tt.allow, tt.deny, got, tt.want)
		}
	}
}

// Nothing that would become wider is translated, and every such rule is named.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ allow, deny, named string }{
		{"ok.test api.example.com:8443", "", "api.example.com:8443"},
		{"api.example.com:443", "", "api.example.com:443"},
		{"api.example.com:*", "", "api.example.com:*"},
		{"raw:db.example.com:443", "", "raw:db.example.com:443"},
		{"GET_https://api.example.com/v1/**", "", "GET https://api.example.com/v1/**"},
		{"203.0.113.0/24:5432", "", "203.0.113.0/24:5432"},
		{"*.example.com", "a.example.com", "a.example.com"},
		{".example.com", "*.a.example.com", "*.a.example.com"},
		{"ok.test", "203.0.113.0/24:25", "203.0.113.0/24:25"},
	} {
		_, err := translate(t, &policy.Document{Allow: entries(tt.allow), Deny: entries(tt.deny)})
		var capability *sandbox.CapabilityError
		if !errors.As(err, &capability) || capability.Isolation != Isolation || !strings.Contains(capability.What, "\n  "+tt.named) || capability.Fix == "" {
			t.Errorf("allow %q, deny %q: %v", tt.allow, tt.deny, err)
		}
	}
	for name, d := range map[string]*policy.Document{
		"hosts":  {Hosts: entries("db.internal=10.0.0.5")},
		"dns":    {DNS: policy.DNS{Mode: policy.DNSForward}},
		"limits": {Limits: policy.Limits{Connections: 5}},
	} {
		if _, err := translate(t, d); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAudit(t *testing.T) {
	n, err := translate(t, &policy.Document{Audit: true, Allow: entries("a.test")})
	if err != nil || !n.All || n.Names != nil || len(n.Notes) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := translate(t, &policy.Document{Audit: true, Deny: entries("a.test")}); err == nil {
		t.Error("a denied name is let out")
	}
}

func TestSecrets(t *testing.T) {
	host, err := policy.ParseHost("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	secret := func(env, header string) policy.Secret {
		return policy.Secret{Env: env, Header: header, Hosts: []policy.Host{host}}
	}
	d := &policy.Document{Allow: entries("*.example.com"), Secrets: []policy.Secret{secret("KEY", "X-Api-Key"), secret("TOKEN", "Authorization")}}
	p, err := policy.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"KEY": "k", "TOKEN": "t"}
	n, err := Translate(p, func(env string) (string, bool) { v, ok := values[env]; return v, ok })
	if err != nil || fmt.Sprint(n.Headers) != "map[api.example.com:map[authorization:Bearer t x-api-key:k]]" || fmt.Sprint(n.Names) != "[*.example.com api.example.com]" {
		t.Errorf("%+v, %v", n, err)
	}
	values["TOKEN"] = "Basic x"
	if n, err = Translate(p, func(env string) (string, bool) { v, ok := values[env]; return v, ok }); err != nil || n.Headers["api.example.com"]["authorization"] != "Basic x" {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := Translate(p, nil); err == nil || strings.Contains(err.Error(), "Basic") {
		t.Errorf("a secret without a value: %v", err)
	}
}

func TestNil(t *testing.T) {
	if n, err := Translate(nil, nil); err != nil || !n.Denies() {
		t.Errorf("no policy: %+v, %v", n, err)
	}
}

// With a gate inside, what is finer than a name goes out as the name, and is said.
// Nothing else gets wider.
func TestOuter(t *testing.T) {
	outer := func(allow, deny string) (*Network, error) {
		p, err := policy.Compile(&policy.Document{Allow: entries(allow), Deny: entries(deny)})
		if err != nil {
			t.Fatal(err)
		}
		return TranslateOuter(p, nil)
	}
	n, err := outer("GET_https://api.example.com/v1/** *.example.org:8443 plain.test", "")
	if err != nil || fmt.Sprint(n.Names) != "[api.example.com *.example.org plain.test]" || n.All {
		t.Fatalf("%+v, %v", n, err)
	}
	said := strings.Join(n.Notes, "\n")
	if !strings.Contains(said, "GET https://api.example.com/v1/**: held by egressd") || !strings.Contains(said, "*.example.org:8443: held by egressd") || strings.Contains(said, "plain.test") {
		t.Errorf("notes: %s", said)
	}
	for _, tt := range []struct{ allow, deny string }{
		{"raw:db.example.com:5432", ""},
		{"192.0.2.1:443", ""},
		{"GET_https://192.0.2.1/**", ""},
		{"api.example.com", "DELETE_https://api.example.com/**"},
		{"*.example.com", "api.example.com"},
	} {
		if n, err := outer(tt.allow, tt.deny); err == nil {
			t.Errorf("allow %s, deny %s became %+v", tt.allow, tt.deny, n)
		}
	}
	_, err = translate(t, &policy.Document{Allow: entries("GET_https://api.example.com/v1/**")})
	if err == nil || !strings.Contains(err.Error(), "--gate-inside") {
		t.Errorf("without a gate: %v", err)
	}
	_, err = translate(t, &policy.Document{Allow: entries("raw:db.example.com:5432")})
	if err == nil || strings.Contains(err.Error(), "--gate-inside") {
		t.Errorf("where no gate helps: %v", err)
	}
}

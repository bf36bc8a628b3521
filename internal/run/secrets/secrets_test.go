package secrets

import (
	"strings"
	"testing"

	"egressd/policy"
)

const file = `
allow: [api.example.com]
secrets:
  - {env: TOKEN, header: Authorization, hosts: [api.example.com]}
`

func compiled(t *testing.T) *policy.Policy {
	t.Helper()
	doc, err := policy.ParseFile("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFind(t *testing.T) {
	p := compiled(t)
	real := func(string) string { return "hunter2" }
	a, err := Find(p, real)
	if err != nil {
		t.Fatal(err)
	}
	placeholder, value, ok := a.Value("TOKEN")
	if !ok || value != "hunter2" || strings.Contains(placeholder, "hunter2") {
		t.Errorf("got %q for %q, %v", placeholder, value, ok)
	}
	if env := a.Env(); len(env) != 1 || env[0] != "TOKEN="+placeholder {
		t.Errorf("inside: %q", env)
	}
	b, err := Find(p, real)
	if err != nil {
		t.Fatal(err)
	}
	if other, _, _ := b.Value("TOKEN"); other == placeholder {
		t.Error("two runs share a placeholder")
	}
	if _, _, ok := a.Value("OTHER"); ok {
		t.Error("a secret that nobody named")
	}
	if _, err := Find(p, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "TOKEN") || !strings.Contains(err.Error(), "p.yaml:4") {
		t.Errorf("a secret that is not set: %v", err)
	}
}

package gate

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/ca"
)

// TestAuthorities has those of a company vouch for origins, and be in the bundle.
func TestAuthorities(t *testing.T) {
	company, err := ca.New([]string{"git.corp.example"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := company.Leaf("git.corp.example")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: "GET https://git.corp.example/**"}}})
	if err != nil {
		t.Fatal(err)
	}
	current := new(policy.Current)
	current.Store(p)
	for _, authorities := range [][]byte{company.PEM(), nil} {
		g, err := New(Config{Policy: current, Authorities: authorities})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cert.Verify(x509.VerifyOptions{Roots: g.proxy.RootCAs, DNSName: "git.corp.example"})
		in := strings.Contains(string(g.Bundle()), strings.TrimSpace(string(company.PEM())))
		if (err == nil) != (authorities != nil) || in != (authorities != nil) {
			t.Errorf("verifies: %v; in the bundle: %t", err, in)
		}
	}
	if _, err := New(Config{Policy: current, Authorities: []byte("no certificate")}); err == nil {
		t.Error("what is no certificate is taken")
	}
}

// TestUpstreamLogin reads the login anew, and says what is wrong without saying it.
func TestUpstreamLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "login")
	access := Upstream("", nil)
	for text, want := range map[string]string{
		"joe:pw\n": "joe:pw", "joe:p:w": "joe:p:w", "hunter2": "", "joe:hunter2\nx": "", "": "", "joe:": "", "joe:hun\x00ter2": "",
		strings.Repeat("x:hunter2", 1000): "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := access(&upstream.Proxy{Credentials: file})
		if a.Login != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is %q: %v", text, a.Login, err)
		}
	}
	if err := os.WriteFile(file, []byte("pw"), 0o600); err != nil {
		t.Fatal(err)
	}
	joe := &upstream.Proxy{Address: upstream.Address{User: "joe"}, Credentials: file}
	if a, err := access(joe); a.Login != "joe:pw" || err != nil {
		t.Errorf("%+v %v", a, err)
	}
	joe.Credentials = ""
	if _, err := access(joe); err == nil {
		t.Error("a user without a password is taken")
	}
	if a, err := Upstream("joe:env", nil)(joe); a.Login != "joe:env" || err != nil {
		t.Errorf("%+v %v", a, err)
	}
	for _, u := range []*upstream.Proxy{{Credentials: "/none"}, {Address: upstream.Address{TLS: true}, CA: "/none"}, {Address: upstream.Address{TLS: true}, CA: file}} {
		if _, err := access(u); err == nil {
			t.Errorf("%+v is taken", u)
		}
	}
}

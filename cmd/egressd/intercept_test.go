//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// origin is an HTTPS server for names, whose certificate roots vouches for. It
// answers with the Authorization that it got.
func origin(t *testing.T, names ...string) (port, roots string) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "origin"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key))(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port, write(t, "origin.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// client is a program that goes through door and trusts what the file bundle
// holds now.
func client(t *testing.T, door, bundle string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(must(os.ReadFile(bundle))(t)) {
		t.Fatalf("%s holds no certificate", bundle)
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: door}),
		TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true,
	}}
}

// status asks for a page with these credentials.
func status(c *http.Client, page, credentials string) (code int, body string, err error) {
	req, err := http.NewRequest(http.MethodGet, page, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", credentials)
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	buf := make([]byte, 1024)
	n, _ := resp.Body.Read(buf)
	return resp.StatusCode, string(buf[:n]), nil
}

// Hosts whose TLS is opened may join on reload: the bundle grows, and who trusts
// the old one still reaches what was reached.
func TestBundleGrows(t *testing.T) {
	port, roots := origin(t, "api.test", "new.test")
	text := "hosts:\n  api.test: 127.0.0.1\n  new.test: 127.0.0.1\n" +
		"secrets:\n  - env: API_KEY\n    header: Authorization\n    hosts: [\"api.test:" + port + "\"]\n" +
		"allow:\n  - GET https://api.test:" + port + "/v1/**\n  - api.test:443\n"
	path, bundle := write(t, "policy.yaml", text), filepath.Join(t.TempDir(), "ca.pem")
	cmd := exec.Command("egressd", "--policy", path, "--listen", "127.0.0.1:0", "--ca-bundle", bundle)
	cmd.Env = []string{"SSL_CERT_FILE=" + roots, "API_KEY=hunter2"}
	p := launch(t, cmd)
	p.wait("msg=ready")
	door := p.addr("proxy")
	early := client(t, door, bundle)
	const placeholder = "Bearer egressd-placeholder-API_KEY" // of a value with seven letters, which comes back as seven asterisks
	if code, body, err := status(early, "https://api.test:"+port+"/v1/x", placeholder); code != 200 || body != "Bearer *******" {
		t.Errorf("allowed: %d %q %v", code, body, err)
	}
	if code, _, err := status(early, "https://api.test:"+port+"/v2/x", placeholder); code != 403 {
		t.Errorf("denied: %d %v", code, err)
	}
	ways["rename"](t, path, text+"  - GET https://new.test:"+port+"/**\n")
	p.wait("policy change", "added=", "new.test:")
	if code, body, err := status(early, "https://api.test:"+port+"/v1/x", placeholder); code != 200 || body != "Bearer *******" {
		t.Errorf("who trusts the old bundle: %d %q %v", code, body, err)
	}
	late := client(t, door, bundle)
	if code, body, err := status(late, "https://new.test:"+port+"/x", "Bearer mine"); code != 200 || body != "Bearer mine" {
		t.Errorf("a host of the new policy: %d %q %v", code, body, err)
	}
	if code, _, err := status(late, "https://new.test:"+port+"/x", placeholder); code != 403 {
		t.Errorf("a placeholder on its way to another host: %d %v", code, err)
	}
	if _, _, err := status(early, "https://new.test:"+port+"/x", "Bearer mine"); err == nil {
		t.Error("who trusts the old bundle trusts a host that was not in it")
	}
	if info := must(os.Stat(bundle))(t); info.Mode().Perm() != 0o644 {
		t.Errorf("the bundle has mode %v", info.Mode())
	}
	if left := must(os.ReadDir(filepath.Dir(bundle)))(t); len(left) != 1 {
		t.Errorf("beside the bundle are %v", left)
	}
	if strings.Contains(p.log.String()+p.events.String(), "hunter2") {
		t.Error("the secret is in the log or the events")
	}
}

// A bundle that cannot be written refuses the policy that needs it.
func TestBundleUnwritable(t *testing.T) {
	dir := t.TempDir()
	bundle := filepath.Join(dir, "sub", "ca.pem")
	out, err := exec.Command("egressd", "--allow", "a.example", "--listen", "127.0.0.1:0", "--ca-bundle", bundle).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--ca-bundle: ") {
		t.Errorf("%v: %s", err, out)
	}
}

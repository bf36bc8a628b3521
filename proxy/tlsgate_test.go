package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"egressd/policy"
	"egressd/proxy/ca"
)

// tlsGate is a webGate in front of an https origin whose certificate names
// origin.test and other.test.
func tlsGate(t *testing.T, h http.HandlerFunc, secrets []policy.Secret, allow ...string) *webGate {
	t.Helper()
	origins, err := ca.New([]string{"origin.test", "other.test"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := origins.Leaf("origin.test")
	if err != nil {
		t.Fatal(err)
	}
	o := httptest.NewUnstartedServer(h)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	o.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.StartTLS()
	t.Cleanup(o.Close)

	g := newWebGate(t, o.Listener.Addr().String(), "origin.test")
	doc := &policy.Document{Secrets: secrets}
	for i, text := range allow {
		doc.Allow = append(doc.Allow, policy.Entry{Text: text, Pos: policy.Pos{File: "--allow", Line: i + 1}})
	}
	for _, name := range []string{"origin.test", "other.test"} {
		doc.Hosts = append(doc.Hosts, policy.Entry{Text: name + "=127.0.0.1"})
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	g.s.Policy.Store(p)
	if g.s.CA, err = ca.New([]string{"origin.test", "other.test"}); err != nil {
		t.Fatal(err)
	}
	g.s.RootCAs = poolOf(t, origins.PEM())
	g.s.SecretValue = func(env string) (string, string, bool) { return "placeholder-" + env, secretWorth, env == "TOKEN" }
	return g
}

func poolOf(t *testing.T, pem []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	return pool
}

// httpsClient trusts the session CA alone.
func (g *webGate) httpsClient(t *testing.T) *http.Client {
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: g.addr}),
		TLSClientConfig:    &tls.Config{RootCAs: poolOf(t, g.s.CA.PEM())},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * patience}
}

// inside opens a TLS connection to origin.test through CONNECT.
func (g *webGate) inside(t *testing.T, sni string) (*rawConn, error) {
	c := g.dial()
	c.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
	resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	tc := tls.Client(c.Conn, &tls.Config{ServerName: sni, RootCAs: poolOf(t, g.s.CA.PEM()), NextProtos: []string{"h2", "http/1.1"}})
	if err := tc.Handshake(); err != nil {
		return nil, err
	}
	return wrapRaw(t, tc), nil
}

// insideSkip is inside for a client that verifies nothing.
func (g *webGate) insideSkip(t *testing.T, sni string) (*tls.Conn, error) {
	c := g.dial()
	c.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
	if resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	tc := tls.Client(c.Conn, &tls.Config{ServerName: sni, InsecureSkipVerify: true}) // the test is about the SNI alone
	return tc, tc.Handshake()
}

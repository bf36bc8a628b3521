// Package demo shows the gate at work without the Internet: an origin on the
// loopback, and a small client that launch runs inside.
//
//	origin, err := demo.Listen()
//	... run (&demo.Client{...}).Run() inside ...
//	text, err := origin.Report()
package demo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// The names of the demo. ".test" never exists in the DNS (RFC 6761).
const (
	AllowedHost = "api.demo.test"
	BlockedHost = "telemetry.demo.test"
)

// Origin is an HTTPS server on the loopback that answers for both names.
type Origin struct {
	Port uint16
	CA   string // its certificate, PEM

	server *http.Server
	done   chan error

	mu   sync.Mutex
	seen map[string]int
}

// Listen starts an origin. The caller closes it.
func Listen() (*Origin, error) {
	cert, pemText, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	o := &Origin{
		Port: uint16(ln.Addr().(*net.TCPAddr).Port),
		CA:   pemText,
		done: make(chan error, 1),
		seen: make(map[string]int),
	}
	o.server = &http.Server{
		Handler:           http.HandlerFunc(o.answer),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
	}
	go o.serve(ln)
	return o, nil
}

func (o *Origin) serve(ln net.Listener) { o.done <- o.server.ServeTLS(ln, "", "") }

func (o *Origin) answer(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	o.mu.Lock()
	o.seen[host]++
	o.mu.Unlock()
	_, _ = fmt.Fprintf(w, "hello from %s", host) // the client hung up: nothing to do
}

// Seen reports how many requests named host.
func (o *Origin) Seen(host string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[host]
}

// Report says what the origin saw of a demo that is over. It is an error if that is
// not what the gate should have let through.
func (o *Origin) Report() (string, error) {
	allowed, blocked := o.Seen(AllowedHost), o.Seen(BlockedHost)
	text := fmt.Sprintf("The origin behind both names saw %d requests for %s and %d for %s.\n", allowed, AllowedHost, blocked, BlockedHost)
	if allowed != 2 || blocked != 0 { // as Client.Run asks
		return text, errors.New("demo: the origin did not see what it should")
	}
	return text, nil
}

// Close stops the origin and waits for it.
func (o *Origin) Close() error {
	err := o.server.Close()
	<-o.done
	return err
}

func certificate() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "launch demo"},
		DNSNames:              []string{AllowedHost, BlockedHost},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text), nil
}

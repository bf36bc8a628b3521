package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Leaf reports a certificate for host (a name in lower-case A-labels or an
// address), which it makes once and keeps. The error wraps ErrOutside for a host
// that the authority was not made for. The caller must not modify the result.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	i := a.issuerOf(host)
	a.mu.Unlock()
	if i == nil {
		return nil, fmt.Errorf("leaf for %q: %w", host, ErrOutside)
	}
	l := a.slot(host)
	l.once.Do(func() { l.cert, l.err = i.sign(host, a.clock()) })
	return l.cert, l.err
}

// slot finds the place of host's leaf; at most leafMax are kept.
func (a *Authority) slot(host string) *leaf {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	if l := a.leaves[host]; l != nil && now.Before(l.end) && !now.Before(l.made.Add(-backdate/2)) {
		return l
	}
	if len(a.leaves) >= leafMax {
		for h := range a.leaves { // any one: they are cheap to make again
			delete(a.leaves, h)
			break
		}
	}
	l := &leaf{made: now, end: now.Add(leafLife / 2)}
	if a.leaves == nil {
		a.leaves = make(map[string]*leaf)
	}
	a.leaves[host] = l
	return l
}

// sign makes a leaf for host, whatever the constraints say.
func (i *issuer) sign(host string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("leaf key: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{Organization: []string{"egressd"}},
		NotBefore:    now.Add(-backdate),
		NotAfter:     earlier(now.Add(leafLife), i.cert.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		t.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		t.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, i.cert, key.Public(), i.key)
	if err != nil {
		return nil, fmt.Errorf("leaf for %q: %w", host, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("leaf for %q: %w", host, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.cert.Raw}, PrivateKey: key, Leaf: parsed}, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Package ca holds the certificate authority of one session: it signs the
// leaves of the hosts whose TLS is intercepted, and of no others.
//
// Threat: whoever gets hold of the CA impersonates any site to the programs that
// trust it -> its key is made for one session, never leaves memory and is never
// written; the certificate carries critical name constraints for the intercepted
// hosts -> a client that ignores name constraints trusts it for more, within that
// session.
package ca

import (
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
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Implementation constants.
const (
	caLife   = 365 * 24 * time.Hour // nothing can be intercepted in a session that is older
	leafLife = 24 * time.Hour
	backdate = time.Hour // for clients whose clock is slow
	leafMax  = 1024      // leaves kept
)

// ErrOutside reports a host that the authority was not made for.
var ErrOutside = errors.New("the host is outside the session CA's name constraints")

// Authority signs leaves for the hosts it was made for. Safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte

	domains []string     // permitted, with their subdomains
	nets    []netip.Addr // permitted addresses

	now func() time.Time

	mu     sync.Mutex
	leaves map[string]*leaf
}

// leaf is one certificate, made once by whoever asks first.
type leaf struct {
	once sync.Once
	cert *tls.Certificate
	err  error
	end  time.Time // when it is to be made anew
}

// New makes the authority of a session. hosts are the hosts that may be
// intercepted: names (which include their subdomains, as name constraints do),
// wildcards ("*.example.com", ".example.com") and IP addresses, in canonical
// spelling. No hosts is an error: such a CA would have no use and no bounds.
func New(hosts []string) (*Authority, error) { return newAt(hosts, time.Now) }

func newAt(hosts []string, now func() time.Time) (*Authority, error) {
	a := &Authority{now: now, leaves: make(map[string]*leaf)}
	for _, h := range hosts {
		if err := a.permit(h); err != nil {
			return nil, err
		}
	}
	if len(a.domains)+len(a.nets) == 0 {
		return nil, errors.New("session CA: no hosts to intercept")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("session CA: %w", err)
	}
	template := a.template()
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("session CA: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("session CA: %w", err)
	}
	a.key = key
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

// permit adds host to what the name constraints allow.
func (a *Authority) permit(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		a.nets = append(a.nets, addr.Unmap())
		return nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(host, "*"), ".")
	if name == "" || strings.ContainsAny(name, "*/: ") {
		return fmt.Errorf("session CA: %q is neither a name nor an address", host)
	}
	if !slices.Contains(a.domains, name) {
		a.domains = append(a.domains, name)
	}
	return nil
}

// template is the CA certificate before it is signed.
func (a *Authority) template() *x509.Certificate {
	now := a.now()
	t := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "egressd session CA", Organization: []string{"egressd"}},
		NotBefore:                   now.Add(-backdate),
		NotAfter:                    now.Add(caLife),
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         a.domains,
	}
	for _, addr := range a.nets {
		bits := addr.BitLen()
		t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, bits)})
	}
	// A constraint binds its own kind of name alone (RFC 5280 section
	// 4.2.1.10), so the kind that no host is of is excluded whole.
	if len(a.nets) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	if len(a.domains) == 0 {
		t.PermittedDNSDomains = []string{"session-ca.invalid"}
	}
	return t
}

// serial reports a random serial number, positive and of full length (RFC 5280
// section 4.1.2.2).
func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails (Go 1.24)
	b[0] &= 0x7f
	b[0] |= 0x40
	return new(big.Int).SetBytes(b)
}

// PEM reports the CA's certificate, for the programs that are to trust it.
func (a *Authority) PEM() []byte { return slices.Clone(a.pem) }

// Bundle reports roots followed by the CA's certificate. Variables such as
// SSL_CERT_FILE replace a program's roots, so they need both.
func (a *Authority) Bundle(roots []byte) []byte {
	b := slices.Clone(roots)
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return append(b, a.pem...)
}

// covers reports whether the name constraints permit host.
func (a *Authority) covers(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return slices.Contains(a.nets, addr.Unmap())
	}
	return slices.ContainsFunc(a.domains, func(d string) bool {
		return host == d || strings.HasSuffix(host, "."+d)
	})
}

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
	backdate = time.Hour          // for clients whose clock is slow
	setBack  = 7 * 24 * time.Hour // what the clock may be set back without an end to the certificate that clients trust
	leafMax  = 1024               // leaves kept

	issuersMax = 64                  // certificates to trust: one for each time that hosts were added
	caRenew    = 30 * 24 * time.Hour // how long before its end a certificate is good for no new host
)

// ErrOutside reports a host that the authority was not made for.
var ErrOutside = errors.New("the host is outside the session CA's name constraints")

var errTooMany = fmt.Errorf("session CA: hosts to intercept were added %d times: start egressd again, so that one certificate covers them", issuersMax)

// Authority signs leaves for the hosts it was made for. The zero Authority signs
// for nobody, until Extend. Safe for concurrent use.
type Authority struct {
	now func() time.Time // nil: the clock

	mu      sync.Mutex
	issuers []*issuer // oldest first
	leaves  map[string]*leaf
}

// issuer is one certificate that clients are to trust, and its key. Immutable.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte

	domains []string     // permitted, with their subdomains
	nets    []netip.Addr // permitted addresses

	// The same for looking up: a policy may name 100,000 hosts, and whoever
	// sends one waits for nothing.
	hasDomain map[string]struct{}
	hasNet    map[netip.Addr]struct{}
}

// leaf is one certificate, made once, when it is first asked for.
type leaf struct {
	once sync.Once
	cert *tls.Certificate
	err  error
	made time.Time // no clock that shows less knows it as valid for sure
	end  time.Time // when it is to be made anew
}

// New makes the authority of a session. hosts are the hosts that may be
// intercepted: names (which include their subdomains, as name constraints do),
// wildcards ("*.example.com", ".example.com") and IP addresses, in canonical
// spelling. No hosts is an error: such a CA would have no use and no bounds.
func New(hosts []string) (*Authority, error) { return newAt(hosts, time.Now) }

func newAt(hosts []string, now func() time.Time) (*Authority, error) {
	a := &Authority{now: now}
	if changed, err := a.Extend(hosts); err != nil {
		return nil, err
	} else if !changed {
		return nil, errors.New("session CA: no hosts to intercept")
	}
	return a, nil
}

// Extend lets a sign for hosts as well, spelled as for New. For those that no
// certificate of a permits, or none for long, it makes a further one: name
// constraints cannot grow. changed reports that it did, and that clients need
// the new Bundle; those who trust the old one still trust every leaf for hosts
// of before.
func (a *Authority) Extend(hosts []string) (changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := newIssuer()
	soon := a.clock().Add(caRenew)
	for _, h := range hosts {
		add := newIssuer()
		if err := add.permit(h); err != nil {
			return false, err
		}
		if !slices.ContainsFunc(a.issuers, func(old *issuer) bool { return old.includes(add) && old.cert.NotAfter.After(soon) }) {
			_ = i.permit(h) // as above
		}
	}
	if len(i.domains)+len(i.nets) == 0 {
		return false, nil
	}
	if len(a.issuers) >= issuersMax {
		return false, errTooMany
	}
	if err := i.make(a.clock()); err != nil {
		return false, fmt.Errorf("session CA: %w", err)
	}
	a.issuers = append(a.issuers, i)
	return true, nil
}

// clock is the time of day, without the monotonic reading: certificates are
// judged by the former, which may jump (a clock that is set, a machine that was
// asleep) while the latter goes on as if nothing had been.
func (a *Authority) clock() time.Time {
	if a.now == nil {
		return time.Now().Round(0)
	}
	return a.now()
}

// make signs the certificate.
func (i *issuer) make(now time.Time) (err error) {
	if i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	template := i.template(now)
	der, err := x509.CreateCertificate(rand.Reader, template, template, i.key.Public(), i.key)
	if err != nil {
		return err
	}
	i.cert, err = x509.ParseCertificate(der)
	i.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return err
}

func newIssuer() *issuer {
	return &issuer{hasDomain: make(map[string]struct{}), hasNet: make(map[netip.Addr]struct{})}
}

// permit adds host to what the name constraints allow.
func (i *issuer) permit(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		if _, has := i.hasNet[addr]; !has {
			i.hasNet[addr] = struct{}{}
			i.nets = append(i.nets, addr)
		}
		return nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(host, "*"), ".")
	if name == "" || strings.ContainsAny(name, "*/: ") {
		return fmt.Errorf("session CA: %q is neither a name nor an address", host)
	}
	if _, has := i.hasDomain[name]; !has {
		i.hasDomain[name] = struct{}{}
		i.domains = append(i.domains, name)
	}
	return nil
}

// template is the certificate before it is signed.
func (i *issuer) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "egressd session CA", Organization: []string{"egressd"}},
		NotBefore:                   now.Add(-setBack),
		NotAfter:                    now.Add(caLife),
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         i.domains,
	}
	for _, addr := range i.nets {
		bits := addr.BitLen()
		t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, bits)})
	}
	// A constraint binds its own kind of name alone (RFC 5280 section
	// 4.2.1.10), so the kind that no host is of is excluded whole.
	if len(i.nets) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	if len(i.domains) == 0 {
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

// PEM reports the certificates of a, for the programs that are to trust it.
func (a *Authority) PEM() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []byte
	for _, i := range a.issuers {
		out = append(out, i.pem...)
	}
	return out
}

// Bundle reports roots followed by PEM. Variables such as SSL_CERT_FILE replace
// a program's roots, so they need both.
func (a *Authority) Bundle(roots []byte) []byte {
	b := slices.Clone(roots)
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return append(b, a.PEM()...)
}

// issuerOf reports who signs for host: the oldest, which most clients trust,
// unless it is about to end. Nil: nobody may. Called with mu held.
func (a *Authority) issuerOf(host string) (found *issuer) {
	for _, i := range a.issuers {
		if i.covers(host) {
			found = i
			if i.cert.NotAfter.After(a.clock().Add(leafLife)) {
				return i
			}
		}
	}
	return found
}

// covers reports whether the name constraints permit host.
func (i *issuer) covers(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		_, has := i.hasNet[addr.Unmap()]
		return has
	}
	for rest, more := host, true; more; _, rest, more = strings.Cut(rest, ".") {
		if _, has := i.hasDomain[rest]; has {
			return true
		}
	}
	return false
}

// includes reports whether i permits all that other permits.
func (i *issuer) includes(other *issuer) bool {
	return !slices.ContainsFunc(other.domains, func(d string) bool { return !i.covers(d) }) &&
		!slices.ContainsFunc(other.nets, func(n netip.Addr) bool { _, has := i.hasNet[n]; return !has })
}

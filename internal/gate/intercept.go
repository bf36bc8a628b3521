package gate

import (
	"crypto/x509"
	"net"
	"os"
	"strings"

	"egressd/policy"
)

// Intercepted lists the hosts whose TLS the policy wants opened: those of
// rules with a path, and those that a secret goes to.
func Intercepted(p *policy.Policy) []string {
	if p == nil {
		return nil
	}
	var hosts []string
	allow, deny := p.Rules()
	for _, r := range append(allow, deny...) {
		_, rest, ok := strings.Cut(r.Text, "https://")
		if !ok {
			continue
		}
		authority, _, _ := strings.Cut(rest, "/")
		if host, _, err := net.SplitHostPort(authority); err == nil {
			authority = host
		}
		hosts = append(hosts, strings.Trim(authority, "[]"))
	}
	for _, s := range p.Secrets() {
		for _, h := range s.Hosts {
			hosts = append(hosts, h.String())
		}
	}
	return hosts
}

// SystemRoots reports the system's root certificates in PEM, nil when none are
// found: the places where distributions keep them.
func SystemRoots() []byte {
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if data, err := os.ReadFile(path); err == nil && x509.NewCertPool().AppendCertsFromPEM(data) {
			return data
		}
	}
	return nil
}

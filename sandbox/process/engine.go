package process

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"strings"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/internal/ca"
	"egressd/policy"
	"egressd/proxy"
)

// engine is what both tiers tell the proxy.
type engine struct {
	policy             *policy.Current
	resolver           *dnsfilter.Resolver
	events             event.Sink
	log                *slog.Logger
	session, isolation string
	ask                func(ctx context.Context, r policy.Request, d policy.Decision) bool
	secretValue        func(env string) (placeholder, value string, ok bool)
	rootCAs            *x509.CertPool
}

// proxy makes the proxy, with a session CA when the policy wants TLS opened.
// bundle is then what programs inside must trust, else nil.
func (e engine) proxy() (s *proxy.Server, bundle []byte, err error) {
	current, resolver := e.policy, e.resolver
	if current == nil {
		current = new(policy.Current)
	}
	if resolver == nil {
		resolver = new(dnsfilter.Resolver)
	}
	s = &proxy.Server{
		Policy: current, Resolver: resolver, Events: e.events, Log: e.log, Session: e.session, Isolation: e.isolation,
		Ask: e.ask, RootCAs: e.rootCAs, SecretValue: e.secretValue,
	}
	hosts := intercepted(current.Load())
	if len(hosts) == 0 {
		return s, nil, nil
	}
	if s.CA, err = ca.New(hosts); err != nil {
		return nil, nil, err
	}
	return s, s.CA.Bundle(systemRoots()), nil
}

// secretPlaceholders puts the placeholders of p's secrets into env.
func (e engine) secretPlaceholders(env []string) []string {
	if e.secretValue == nil || e.policy == nil || e.policy.Load() == nil {
		return env
	}
	env = append([]string{}, env...)
	for _, secret := range e.policy.Load().Secrets() {
		if placeholder, _, ok := e.secretValue(secret.Env); ok {
			env = setEnv(env, secret.Env, placeholder)
		}
	}
	return env
}

// intercepted lists the hosts whose TLS the policy wants opened: those of
// rules with a path, and those that a secret goes to.
func intercepted(p *policy.Policy) []string {
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

// systemRoots reports the system's root certificates in PEM, nil when none are
// found: the places where distributions keep them.
func systemRoots() []byte {
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

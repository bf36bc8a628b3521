// Package dnsfilter answers DNS questions by policy: synthetic addresses for
// captured namespaces, or forwarded look-ups for clients that need real ones.
package dnsfilter

import (
	"context"
	"log/slog"
	"net"
	"net/netip"

	"egressd/event"
	"egressd/policy"
)

// Server answers DNS over UDP and TCP.
type Server struct {
	Policy    *policy.Current
	Resolver  *Resolver // forward mode only
	Pins      *Pins     // synthetic mode: where addresses come from
	Events    event.Sink
	Log       *slog.Logger
	Session   string
	Isolation string

	// AskLater answers a name that no rule lists with a synthetic address all
	// the same, because a person will be asked when the connection arrives
	// (--approve). Names that a deny rule covers stay denied.
	AskLater bool
}

// Serve answers on pc and ln (either may be nil) until ctx ends; closes both;
// returns after every goroutine it started has exited.
func (s *Server) Serve(ctx context.Context, pc net.PacketConn, ln net.Listener) error { return nil }

// Pins is the table of synthetic addresses: bounded, safe for concurrent use.
// It implements proxy.Names.
type Pins struct{}

// NewPins hands out addresses from prefix (zero: 198.18.0.0/15, RFC 2544).
func NewPins(prefix netip.Prefix) (*Pins, error) { return &Pins{}, nil }

// Pin reports the synthetic address of name, the same one while it lives.
func (p *Pins) Pin(name policy.Host) (netip.Addr, error) { return netip.Addr{}, nil }

// NameOf: see proxy.Names.
func (p *Pins) NameOf(a netip.Addr) (name policy.Host, known, synthetic bool) {
	return policy.Host{}, false, false
}

// Upstream is one recursive resolver: "1.1.1.1", "udp://h:53", "tcp://h:53",
// "tls://host@addr:853" and the like.
type Upstream struct{}

// ParseUpstream reads one --dns-upstream value.
func ParseUpstream(s string) (Upstream, error) { return Upstream{}, nil }

// SystemUpstreams reads a resolv.conf.
func SystemUpstreams(resolvConf []byte) ([]Upstream, error) { return nil, nil }

// Resolver is the caching resolver (TTL, negative answers, singleflight,
// bounded). It implements proxy.Resolver; errors map to policy reasons through
// ReasonOf. The zero Resolver has no upstreams and fails every look-up.
type Resolver struct {
	Upstreams []Upstream
	Log       *slog.Logger
}

// Lookup reports the addresses of name.
func (r *Resolver) Lookup(ctx context.Context, name policy.Host) ([]netip.Addr, error) {
	return nil, nil
}

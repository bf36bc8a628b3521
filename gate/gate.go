// Package gate joins the proxy and the DNS filter of one policy:
//
//	g, err := gate.New(gate.Config{Policy: current, Resolver: resolver, Events: record})
//	err = g.Serve(ctx, gate.Doors{Explicit: []net.Listener{ln}})
//
// Both judge by the same policy and record into the same sink, and the proxy maps
// the synthetic addresses that the DNS filter handed out back to their names. A
// sandbox has one gate, a daemon one for each policy.
package gate

import (
	"context"
	"log/slog"
	"net/netip"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy"
	"egressd/proxy/ca"
)

// Config is what a gate is made of. The zero Config makes one that denies
// everything.
type Config struct {
	Policy   *policy.Current     // nil denies everything
	Resolver *dnsfilter.Resolver // real look-ups, after the verdict; nil: no name resolves
	Events   event.Sink          // nil denies every flow: what cannot be recorded does not pass
	Log      *slog.Logger        // nil discards

	// Ask is consulted when no rule covers a flow; nil: the denial stands.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool

	// Authorities, in PEM, vouch for origins besides the system's where TLS is opened,
	// unless RootCAs says who does, and are in the Bundle. Nil: no others.
	Authorities []byte

	Memory int64 // limit on the memory of this process, in bytes, by which the default of connections is bounded; zero: none is known

	Took phase.Took // hears how long the phases of flows lasted; nil: nobody does

	// Upstream reports how the upstream proxy of the policy is used: see [Upstream].
	// Nil: without a login, with the system's roots.
	Upstream func(*upstream.Proxy) (proxy.UpstreamAccess, error)

	Identity
	Interception
	Shared
}

// Identity and Interception are the proxy's: what a gate is called in events and
// denials, and what it needs to open TLS. With a nil CA, New makes an authority of
// the gate's own if the policy wants TLS opened.
type (
	Identity     = proxy.Identity
	Interception = proxy.Interception
)

// Shared is what gates have in common that share doors, or a machine with their
// clients. The zero Shared is for a gate that stands alone.
type Shared struct {
	// Pins are the synthetic addresses, shared by gates that one DNS door serves.
	// Nil: the gate has its own.
	Pins *dnsfilter.Pins
	// Route reports which gate judges a client of the doors: this one or another
	// that serves or runs. Nil from Route: the client must authenticate, and the
	// DNS door refuses it. A nil Route: this gate judges everybody. See
	// proxy.Server.
	Route func(proxy.Client) *Gate
	// Resets is shared by gates that share a network namespace with their clients.
	// Nil: this one does not. See proxy.Server.
	Resets *proxy.Resets
	// Own are the owner's other listeners: never dialled, whatever a rule says.
	Own []netip.AddrPort
}

// Gate judges and carries the flows of any number of doors. Safe for concurrent
// use.
type Gate struct {
	proxy  *proxy.Server
	dns    *dnsfilter.Server
	bundle []byte
	log    *slog.Logger
}

// New makes a gate; nothing is served yet.
func New(c Config) (_ *Gate, err error) {
	if c.Pins == nil {
		if c.Pins, err = dnsfilter.NewPins(netip.Prefix{}); err != nil {
			return nil, err
		}
	}
	if c.Policy == nil {
		c.Policy = new(policy.Current)
	}
	if c.Resolver == nil {
		c.Resolver = new(dnsfilter.Resolver)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.RootCAs == nil && len(c.Authorities) > 0 {
		if c.RootCAs, err = rootsWith("", c.Authorities); err != nil {
			return nil, err
		}
	}
	g := &Gate{log: c.Log}
	if c.CA == nil {
		if hosts := c.Policy.Load().Intercepted(); len(hosts) > 0 {
			if c.CA, err = ca.New(hosts); err != nil {
				return nil, err
			}
			g.bundle = c.CA.Bundle(Roots(c.Authorities))
		}
	}
	g.proxy = &proxy.Server{
		Policy: c.Policy, Resolver: c.Resolver, Names: c.Pins, Events: c.Events, Log: c.Log,
		Identity: c.Identity, Interception: c.Interception,
		Ask: c.Ask, Upstream: c.Upstream, Own: c.Own, Resets: c.Resets, Took: c.Took, Memory: c.Memory,
	}
	g.dns = &dnsfilter.Server{
		Policy: c.Policy, Resolver: c.Resolver, Pins: c.Pins, Events: c.Events, Log: c.Log,
		Session: c.Session, Isolation: c.Isolation, AskLater: c.Ask != nil,
	}
	if c.Route != nil {
		g.route(c.Route)
	}
	return g, nil
}

// route makes the proxy and the DNS filter ask r.
func (g *Gate) route(r func(proxy.Client) *Gate) {
	g.proxy.Route = func(c proxy.Client) *proxy.Server {
		if to := r(c); to != nil {
			return to.proxy
		}
		return nil
	}
	g.dns.Route = func(client netip.AddrPort) *dnsfilter.Server {
		if to := r(proxy.Client{Addr: client}); to != nil {
			return to.dns
		}
		return nil
	}
}

// Run serves the clients that another gate's Route leads here, until ctx ends or
// the gate has been drained. It calls started once they may be led here; before
// that they are refused. See proxy.Server.Run.
func (g *Gate) Run(ctx context.Context, started func()) { g.proxy.Run(ctx, started) }

// Bundle reports in PEM the certificates that clients must trust: the system's
// roots and the authority that New made. Nil if New made none.
func (g *Gate) Bundle() []byte { return g.bundle }

// Rejudge closes every flow that the policy in force now denies and reports how
// many it closed.
func (g *Gate) Rejudge() int { return g.proxy.Rejudge() }

// Drain stops accepting at the proxy's doors and lets flows finish until ctx
// ends. See proxy.Server.Drain.
func (g *Gate) Drain(ctx context.Context) error { return g.proxy.Drain(ctx) }

// Stats reports what the proxy is carrying and has carried.
func (g *Gate) Stats() proxy.Stats { return g.proxy.Stats() }

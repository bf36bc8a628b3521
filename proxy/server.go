// Package proxy holds the doors (CONNECT, absolute-form HTTP, SOCKS, captured
// TCP), the dial path with its second look, and the relay.
package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"

	"egressd/event"
	"egressd/policy"
)

// Resolver finds the addresses of a name. Called only after the name was
// allowed. Safe for concurrent use.
type Resolver interface {
	Lookup(ctx context.Context, name policy.Host) ([]netip.Addr, error)
}

// Names maps a synthetic address back to the name it was handed out for.
type Names interface {
	// NameOf reports the name behind a. known is false for an address of the
	// synthetic range that was never handed out; synthetic is false when a is
	// not in the range at all.
	NameOf(a netip.Addr) (name policy.Host, known, synthetic bool)
}

// Server is one gate: every flow that comes through any of its doors is judged
// by Policy. Set the fields before the first Serve; the zero Server denies
// everything.
type Server struct {
	Policy   *policy.Current
	Resolver Resolver
	Names    Names      // nil: captured addresses are literal
	Events   event.Sink // nil denies: a flow that cannot be recorded does not pass
	Log      *slog.Logger

	Session   string // copied into every event
	Isolation string

	// Ask is consulted when no rule covers a flow (ReasonHostNotListed,
	// ReasonPortNotListed): true lets this flow pass. Nil: the denial stands.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool

	Own []netip.AddrPort // the gate's own listeners outside: never dialled, whatever a rule says

	flows atomic.Uint64 // the last flow number given out
}

// Serve runs the explicit doors (CONNECT, absolute-form HTTP, SOCKS4, 4a and 5)
// on ln until ctx ends or ln fails. It closes ln, and returns only after every
// goroutine it started has exited.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error { return nil }

// ServeTransparent is Serve for captured TCP: the destination is the
// connection's original one (SO_ORIGINAL_DST, else its local address).
func (s *Server) ServeTransparent(ctx context.Context, ln net.Listener) error { return nil }

// ServeFixed is Serve for a listener that stands for one destination.
func (s *Server) ServeFixed(ctx context.Context, ln net.Listener, h policy.Host, port uint16) error {
	return nil
}

// Rejudge closes every flow that the policy in force now denies and reports
// how many it closed.
func (s *Server) Rejudge() int { return 0 }

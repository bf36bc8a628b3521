// Package proxy holds the doors (CONNECT, absolute-form HTTP, SOCKS, captured
// TCP), the dial path with its second look, and the relay.
package proxy

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/ca"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/pool"
	"egressd/proxy/internal/relay"
)

// Resolver finds the addresses of a name. Called only after the name was
// allowed. Safe for concurrent use. An error with a method
// PolicyReason() policy.Reason says itself how it is told to clients.
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

	Session string // copied into every event
	// PolicyName is what the person who can change the policy calls it: denials
	// name it. "": the policy is what launch was given on its command line.
	PolicyName string
	Isolation  string

	// Ask is consulted when no rule covers a flow (ReasonHostNotListed,
	// ReasonPortNotListed): true lets this flow pass. Nil: the denial stands.
	// The later looks (addresses, SNI, Host) are taken all the same.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool

	Resets *Resets // shared by the gates that share a namespace with their clients; nil: this one does not

	Own []netip.AddrPort // the gate's own listeners outside: never dialled, whatever a rule says

	// Route reports who judges a client: s itself or another Server that serves
	// or runs. Nil: the client must authenticate (407, SOCKS authentication). It
	// is asked when the client has said what it wants, with the credentials that
	// came with it, and for captured connections, which have none, at once; then
	// again with every request, and all requests of one connection must lead to
	// the same Server. Until it has answered, the limits of s are in force; after
	// that the judge's are, and those of s on connections and rates. Credentials
	// never travel upstream and are in no event. It must be quick and safe for
	// concurrent use. Without a Route s judges everybody, and nobody's credentials
	// are read.
	Route func(Client) *Server

	// CA signs the certificates of intercepted hosts. Nil: what the policy says
	// to intercept is denied with ReasonInterceptOff.
	CA *ca.Authority
	// RootCAs verifies the origins of intercepted TLS. Nil: the system's roots.
	RootCAs *x509.CertPool
	// SecretValue reports the placeholder that clients see for the secret in
	// the environment variable env, and its value. Nil: nothing is substituted.
	SecretValue func(env string) (placeholder, value string, ok bool)
	// Rewrite changes requests inside intercepted TLS. Nil: they leave as they came.
	Rewrite Rewriter

	pool upstreamPool // kept connections to HTTP origins

	flows    atomic.Uint64    // the last flow number given out
	carried  [2]atomic.Uint64 // bytes to origins and from them
	life     life
	serving  listening
	admitted admission.Gate        // of the connections that came in here or are judged here
	judged   admission.Set[*visit] // the connections that are judged here
	open     registry
	drops    drops
	heads    pool.Buffers     // for first bytes
	held     admission.Budget // of first bytes
	bodies   pool.Buffers     // for HTTP bodies on their way
	engine   relay.Goroutines
	fewFiles atomic.Bool // that there are few was logged

	// Seams for tests. Nil, zero: the real thing.
	endGrace    time.Duration
	dialFunc    func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)
	originalDst func(c net.Conn) (netip.AddrPort, error)
}

// now is the clock of events and limits.
func (s *Server) now() time.Time { return time.Now() }

// log reports where diagnostics go; never nil.
func (s *Server) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.New(slog.DiscardHandler)
}

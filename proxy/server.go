package proxy

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"egressd/proxy/internal/drops"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/ca"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/flows"
	"egressd/proxy/internal/origins"
	"egressd/proxy/internal/pool"
	"egressd/proxy/internal/relay"
	"egressd/proxy/internal/secret"
	"egressd/proxy/internal/socket"
)

// Resolver finds the addresses of a name. Called only after the name was
// allowed. Safe for concurrent use. Any error denies the flow: one with a method
// PolicyReason() policy.Reason with that reason, others with ReasonDNSError.
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

// Server judges every flow that comes through any of its doors by Policy. Set the
// fields before the first Serve; the zero Server denies everything.
type Server struct {
	Policy   *policy.Current // nil denies everything
	Resolver Resolver        // nil: only addresses and hosts entries can be dialled
	Names    Names           // nil: captured addresses are literal
	Events   event.Sink      // nil denies everything: what cannot be recorded does not pass
	Log      *slog.Logger    // nil discards

	Identity
	Interception

	// Upstream reports how the upstream proxy that the policy names is used. It is
	// called for each connection to it, and must be quick. An error says in words of
	// the operator's what is wrong, without the login. Nil: without a login, with
	// the system's roots.
	Upstream func(*upstream.Proxy) (UpstreamAccess, error)

	// Ask is consulted when no rule covers a flow (ReasonHostNotListed,
	// ReasonPortNotListed): true lets this flow pass. Nil: the denial stands.
	// The later checks (addresses, SNI, Host) are made all the same.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool

	// Route reports the judge of a client: s itself or another Server that serves
	// or runs. Nil from Route: the client must authenticate (407, SOCKS
	// authentication). Route is called when the client has said what it wants,
	// with the credentials that came with it, and at once for captured
	// connections, which have none; then again with every request, and all
	// requests of one connection must lead to the same Server. Until Route has
	// answered, the limits of s are in force; after that the judge's are, and
	// those of s on connections and rates. Credentials never travel upstream and
	// are in no event. Route must be quick and safe for concurrent use. A nil
	// Route: s judges everybody and reads nobody's credentials.
	Route func(Client) *Server

	Own    []netip.AddrPort // listeners outside that must never be dialled, whatever a rule says
	Took   phase.Took       // hears how long the phases of flows lasted; nil: nobody does
	Memory int64            // limit on the memory of this process, in bytes: see Room; zero: none is known
	Resets *Resets          // shared by Servers that share a network namespace with their clients; nil: s does not

	state
}

// Resets remembers which captured connections the gate has reset; see
// [Server.Resets]. All gates of one network namespace share one. The zero Resets
// is empty. Safe for concurrent use.
type Resets = socket.Resets

// Identity is what a Server is called in events and denials.
type Identity struct {
	Session   string // copied into every event
	Isolation string // what surrounds the clients; copied into every event
	// PolicyName is what the person who can change the policy calls it; denials
	// name it. "": the policy is what launch was given on its command line.
	PolicyName string
}

// Interception is what a Server needs to open TLS. The zero Interception opens
// none.
type Interception struct {
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
}

// Rewriter may change a request that was allowed and is about to leave for host
// over verified TLS: its fields and its Host. What was judged stays what is
// dialled. It must be quick and safe for concurrent use.
type Rewriter func(host string, r *http.Request)

// Client is what a Server knows about a client when it calls [Server.Route].
type Client struct {
	Addr netip.AddrPort // zero: not known
	// Token is the user name of the credentials that were sent; HasToken reports
	// whether there were any. An unknown token must lead to nil, never to the
	// Server for clients without one.
	Token    string
	HasToken bool
}

// state is what a Server keeps while it serves, by what it belongs to.
type state struct {
	// Listeners and the connections they accept.
	lifecycle lifecycle
	serving   socket.Listeners
	admitted  admission.Gate       // the connections that came in here or are judged here
	judged    admission.Set[*conn] // the connections that are judged here
	drops     drops.Counter
	short     atomic.Bool // that there is room for few was logged

	// Flows that were allowed.
	flows   atomic.Uint64 // the last flow number given out
	open    flows.Set[*conn]
	carried [2]atomic.Uint64 // bytes to origins and from them

	// Bytes on their way.
	heads  pool.Buffers     // for first bytes
	held   admission.Budget // of first bytes
	engine relay.Goroutines // of tunnels; the relay.Engine in use
	requests

	seams
}

// requests is what HTTP requests of all clients share.
type requests struct {
	bodies pool.Buffers  // for bodies
	pool   origins.Pools // kept connections to origins
	values secret.Cache  // of the policy's secrets
}

// seams are for tests. Nil, zero: the real thing.
type seams struct {
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

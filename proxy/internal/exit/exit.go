// Package exit is how an allowed flow leaves: it looks the name up, has every address
// judged, and connects to one of them, or to the upstream proxy that the policy names.
//
//	way, d := dialer.Find(ctx, policy, request)
//	if d.Allowed() {
//		got := dialer.Dial(ctx, request, way)
//	}
//
// It decides nothing: its [Judge] is asked at every step.
package exit

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/socket"
)

// Implementation constants.
const (
	LookupTimeout = 10 * time.Second
	DialTimeout   = 20 * time.Second // over all addresses, and the upstream proxy's answer
	Redials       = 4                // of a connection that came back to the gate

	// hopefulTimeout bounds a look-up whose failure is not the end: the upstream
	// proxy looks the name up, too.
	hopefulTimeout = 2 * time.Second
)

// Resolver is proxy.Resolver.
type Resolver interface {
	Lookup(ctx context.Context, name policy.Host) ([]netip.Addr, error)
}

// Judge is what the gate says about one flow. Safe for concurrent use.
type Judge interface {
	// Check asks the policy in force about r, as it is.
	Check(r policy.Request) policy.Decision
	// CheckAddrs asks about all addresses that r.Host has.
	CheckAddrs(r policy.Request, addrs []netip.Addr) policy.Decision
	// CheckAddr asks about r.Addr, which is about to be dialled.
	CheckAddr(r policy.Request) policy.Decision
	// Loops reports whether r leads to one of the gate's own listeners.
	Loops(r policy.Request) bool
	// Survive is deferred by every goroutine: it recovers from a panic.
	Survive()
	// FreeFiles gives descriptors back that can be done without.
	FreeFiles()
}

// Access is what it takes to use an upstream proxy, besides its address.
type Access struct {
	Login string         // USER:PASSWORD; "": none is sent
	Roots *x509.CertPool // that vouch for an https:// proxy; nil: the system's
}

// Dialer finds ways out and takes them, for one flow or for several.
type Dialer struct {
	Judge
	Resolver Resolver       // nil: no name has an address
	Resets   *socket.Resets // nil: none
	// Access reports how the upstream proxy is used. Nil: without login, with
	// the system's roots.
	Access func(*upstream.Proxy) (Access, error)
	// Connect stands in for d.DialContext in tests; nil: the real thing.
	Connect func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)
}

// Way is how one flow leaves.
type Way struct {
	Addrs   []netip.Addr    // judged. Nil with Via: the upstream proxy looks the name up
	Via     *upstream.Proxy // nil: directly
	Refused netip.Addr      // the address for which the flow is denied, for the record; zero: none
	Detail  string          // of a denial, in words of ours; "": the reason says it
}

// Result is a connection, or why there is none.
type Result struct {
	dial.Result
	Detail string        // as in Way
	Took   time.Duration // what was waited for; zero: nothing, since a check ended it
}

func because(r policy.Reason) policy.Decision { return policy.Decision{Reason: r} }

// Find looks r.Host up (hosts entries of p first, then the Resolver; a literal is
// itself), has all addresses judged, and says which way the flow goes. The way may be
// taken only if the decision allows.
//
// Threat: with an upstream proxy, a flow that is meant to leave through it goes
// directly, past what the company inspects and records -> the way is settled here, once,
// by the name or the literal that was asked for and never by what a look-up says, and
// Dial has no other way than this one. Left over: addresses of this machine's loopback
// are dialled, since the proxy would take them for its own; they need a rule.
//
// Threat: with resolve: proxy, an allowed name leads to a private address, the metadata
// service of the proxy's machine for example -> if this machine can look the name up,
// a denied address refuses the flow. Left over: names that only the proxy knows, and
// owners of names who answer the two of them differently. With resolve: local nothing
// is left over: the proxy gets the judged address.
func (d Dialer) Find(ctx context.Context, p *policy.Policy, r policy.Request) (Way, policy.Decision) {
	var w Way
	if u := p.Upstream(); !u.Bypasses(r.Host.Name(), r.Host.Addr(), r.Port) {
		w.Via = u
	}
	addrs, pinned, no := d.lookup(ctx, p, r.Host, w.Via != nil && w.Via.AtProxy)
	if d.isProxy(ctx, p.Upstream(), r, addrs) {
		w.Detail = "the upstream proxy itself is for the gate alone"
		return w, because(policy.ReasonLoop)
	}
	if len(addrs) == 0 {
		if w.Via == nil || !w.Via.AtProxy || no.Reason == policy.ReasonNoPolicy {
			if w.Via != nil {
				w.Detail = "names are looked up here and not at the upstream proxy"
			}
			return w, no
		}
		return w, d.Check(r)
	}
	judged := d.CheckAddrs(r, addrs)
	if !judged.Allowed() {
		if special := func(a netip.Addr) bool { return policy.ClassifyAddr(a) != "" }; judged.Reason == policy.ReasonIPProhibited {
			w.Refused = addrs[max(0, slices.IndexFunc(addrs, special))] // else it is this machine's own
		}
		return w, judged
	}
	if w.Via != nil && allLoopback(addrs) {
		w.Via = nil
	}
	if w.Via == nil || !w.Via.AtProxy || pinned {
		w.Addrs = addrs
	}
	return w, judged
}

func allLoopback(addrs []netip.Addr) bool {
	for _, a := range addrs {
		if !a.Unmap().IsLoopback() {
			return false
		}
	}
	return true
}

// lookup finds the addresses of h; without any, the decision says why. pinned: they do
// not come from a look-up. hopeful: it may fail.
func (d Dialer) lookup(ctx context.Context, p *policy.Policy, h policy.Host, hopeful bool) (addrs []netip.Addr, pinned bool, no policy.Decision) {
	if a := h.Addr(); a.IsValid() {
		return []netip.Addr{a}, true, policy.Decision{}
	}
	if h.IsZero() || p == nil {
		return nil, false, policy.Decision{}
	}
	if addrs := p.Static(h); len(addrs) > 0 {
		return addrs, true, policy.Decision{}
	}
	if d.Resolver == nil {
		return nil, false, because(policy.ReasonDNSError)
	}
	timeout := LookupTimeout
	if hopeful {
		timeout = hopefulTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := d.Resolver.Lookup(ctx, h)
	switch {
	case err != nil:
		return nil, false, because(dial.LookupReason(err))
	case len(addrs) == 0:
		return nil, false, because(policy.ReasonNotFound)
	}
	return addrs, false, policy.Decision{}
}

// Dial connects the way that Find found for r. The caller closes the connection.
func (d Dialer) Dial(ctx context.Context, r policy.Request, w Way) Result {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	if w.Via != nil {
		return timed(time.Now(), d.through(ctx, r, w))
	}
	return timed(time.Now(), Result{Result: d.race(ctx, w.Addrs, func(ctx context.Context, a netip.Addr) dial.Result {
		return d.attempt(ctx, r, a)
	})})
}

// timed notes how long got took, unless a check ended it.
func timed(start time.Time, got Result) Result {
	if c := got.Decision.Reason.Class(); got.Conn != nil || c == policy.ClassUpstream || c == policy.ClassTimeout {
		got.Took = time.Since(start)
	}
	return got
}

// race tries addrs and takes the first connection.
func (d Dialer) race(ctx context.Context, addrs []netip.Addr, attempt func(context.Context, netip.Addr) dial.Result) dial.Result {
	switch len(addrs) {
	case 0:
		return dial.Result{Decision: because(policy.ReasonNotFound)}
	case 1:
		return attempt(ctx, addrs[0])
	}
	return dial.First(ctx, dial.Interleave(addrs), func(ctx context.Context, a netip.Addr) dial.Result {
		got := dial.Result{Decision: because(policy.ReasonInternal)} // of an attempt that panics
		func() {
			defer d.Survive()
			got = attempt(ctx, a)
		}()
		return got
	})
}

// deniedDial carries the last check's denial out of net.Dialer.
type deniedDial struct{ d policy.Decision }

func (e *deniedDial) Error() string { return "denied: " + e.d.Reason.String() }

// attempt connects to one address of r.
func (d Dialer) attempt(ctx context.Context, r policy.Request, a netip.Addr) dial.Result {
	final := policy.Decision{}
	c, no := d.connect(ctx, netip.AddrPortFrom(a, r.Port), func(got netip.AddrPort) (policy.Decision, bool) {
		r.Addr = got.Addr()
		final = d.CheckAddr(r)
		return final, final.Allowed()
	})
	if c == nil {
		return dial.Result{Decision: no}
	}
	return dial.Result{Conn: c, Addr: a, Decision: final}
}

// connect connects to want, which last sees once more: false is no. Without a connection, the
// decision says why.
func (d Dialer) connect(ctx context.Context, want netip.AddrPort, last func(netip.AddrPort) (policy.Decision, bool)) (net.Conn, policy.Decision) {
	dialer := net.Dialer{
		// Threat: something between the look-up and the socket (a resolver
		// inside the dialer, a later edit of this file) connects to another
		// address than the one judged -> the literal that the kernel is about
		// to get is compared and judged here once more.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			got, err := netip.ParseAddrPort(address)
			if err != nil || got != want {
				return &deniedDial{because(policy.ReasonInternal)}
			}
			if final, ok := last(got); !ok {
				return &deniedDial{final}
			}
			return nil
		},
	}
	connect := dialer.DialContext
	if d.Connect != nil {
		connect = func(ctx context.Context, network, address string) (net.Conn, error) {
			return d.Connect(ctx, &dialer, network, address)
		}
	}
	c, err := connect(ctx, "tcp", want.String())
	if socket.OutOfFiles(err) {
		d.FreeFiles()
		c, err = connect(ctx, "tcp", want.String())
	}
	for i := 0; err == nil && d.Resets.Hits(socket.AddrPort(c.LocalAddr()), want, time.Now()); i++ {
		_ = c.Close() // it has come back to us
		if i == Redials {
			return nil, because(policy.ReasonUnreachable)
		}
		c, err = connect(ctx, "tcp", want.String())
	}
	var denied *deniedDial
	switch {
	case errors.As(err, &denied):
		return nil, denied.d
	case err != nil:
		return nil, because(dial.Reason(err))
	}
	return c, policy.Decision{}
}

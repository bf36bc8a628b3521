package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"egressd/policy"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/socket"
)

// Implementation constants of the dial path.
const (
	resolveTimeout = 10 * time.Second
	dialTimeout    = 20 * time.Second // over all addresses
	redials        = 4                // of a connection that came back to the gate

	// evictForFiles is how many connections without a request make room at a time
	// when the process is out of descriptors.
	evictForFiles = 16
)

// resolve finds the addresses of r.Host (hosts entries first, then Resolver; a
// literal is itself) and judges all of them. The addresses
// are nil unless the decision allows. r.Addr is then the one that was refused, for
// the record; the zero Addr: none was.
func (s *Server) resolve(ctx context.Context, c *conn, r *policy.Request) ([]netip.Addr, policy.Decision) {
	addrs, d := s.lookup(ctx, r.Host)
	if len(addrs) == 0 {
		return nil, d
	}
	if d = s.checkAddrs(c, *r, addrs); d.Allowed() {
		return addrs, d
	}
	if special := func(a netip.Addr) bool { return policy.ClassifyAddr(a) != "" }; d.Reason == policy.ReasonIPProhibited {
		r.Addr = addrs[max(0, slices.IndexFunc(addrs, special))] // else it is this machine's own
	}
	return nil, d
}

// lookup finds the addresses of h; without any, the decision says why.
func (s *Server) lookup(ctx context.Context, h policy.Host) ([]netip.Addr, policy.Decision) {
	if a := h.Addr(); a.IsValid() {
		return []netip.Addr{a}, policy.Decision{}
	}
	if h.IsZero() || s.Policy == nil {
		return nil, policy.Decision{}
	}
	if addrs := s.Policy.Load().Static(h); len(addrs) > 0 {
		return addrs, policy.Decision{}
	}
	if s.Resolver == nil {
		return nil, because(policy.ReasonDNSError)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := s.Resolver.Lookup(ctx, h)
	if err != nil {
		return nil, because(dial.LookupReason(err))
	}
	if len(addrs) == 0 {
		return nil, because(policy.ReasonNotFound)
	}
	return addrs, policy.Decision{}
}

// dialAddrs connects to one of addrs, all of which resolve has judged for r.
// The caller closes the connection.
func (s *Server) dialAddrs(ctx context.Context, c *conn, r policy.Request, addrs []netip.Addr) dial.Result {
	if len(addrs) == 0 {
		return dial.Result{Decision: because(policy.ReasonNotFound)}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if len(addrs) == 1 {
		return s.attempt(ctx, c, r, addrs[0])
	}
	return dial.First(ctx, dial.Interleave(addrs), func(ctx context.Context, a netip.Addr) dial.Result {
		got := dial.Result{Decision: because(policy.ReasonInternal)} // of an attempt that panics
		func() {
			defer c.survive(nil)
			got = s.attempt(ctx, c, r, a)
		}()
		return got
	})
}

// dial is resolve followed by dialAddrs. The connection is nil unless the
// decision allows; the caller closes it.
func (s *Server) dial(ctx context.Context, c *conn, r *policy.Request) (net.Conn, policy.Decision) {
	addrs, d := s.resolve(ctx, c, r)
	if !d.Allowed() {
		return nil, d
	}
	got := s.dialAddrs(ctx, c, *r, addrs)
	return got.Conn, got.Decision
}

// deniedDial carries the last check's denial out of net.Dialer.
type deniedDial struct {
	d    policy.Decision
	addr netip.Addr // that was refused; zero: none was
}

func (e *deniedDial) Error() string { return "denied: " + e.d.Reason.String() }

// attempt connects to one address.
func (s *Server) attempt(ctx context.Context, from *conn, r policy.Request, a netip.Addr) dial.Result {
	want := netip.AddrPortFrom(a, r.Port)
	final := policy.Decision{}
	d := net.Dialer{
		// Threat: something between the look-up and the socket (a resolver
		// inside the dialer, a later edit of this file) connects to another
		// address than the one judged -> the literal that the kernel is about
		// to get is compared and judged here once more.
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			got, err := netip.ParseAddrPort(address)
			if err != nil || got != want {
				return &deniedDial{d: because(policy.ReasonInternal)}
			}
			r.Addr = got.Addr()
			if final = s.checkAddr(from, r); !final.Allowed() {
				return &deniedDial{d: final}
			}
			return nil
		},
	}
	connect := d.DialContext
	if s.dialFunc != nil {
		connect = func(ctx context.Context, network, address string) (net.Conn, error) {
			return s.dialFunc(ctx, &d, network, address)
		}
	}
	c, err := connect(ctx, "tcp", want.String())
	if socket.OutOfFiles(err) {
		s.freeFiles()
		c, err = connect(ctx, "tcp", want.String())
	}
	for i := 0; err == nil && s.Resets.Hits(socket.AddrPort(c.LocalAddr()), want, s.now()); i++ {
		_ = c.Close() // it has come back to us
		if i == redials {
			return dial.Result{Decision: because(policy.ReasonUnreachable)}
		}
		c, err = connect(ctx, "tcp", want.String())
	}
	if err != nil {
		return dial.Result{Decision: dialDecision(err)}
	}
	return dial.Result{Conn: c, Addr: a, Decision: final}
}

func dialDecision(err error) policy.Decision {
	var dd *deniedDial
	if errors.As(err, &dd) {
		return dd.d
	}
	return because(dial.Reason(err))
}

// freeFiles gives back the descriptors that s can do without.
func (s *Server) freeFiles() {
	s.engine.Trim()
	s.pool.CloseIdle()
	s.admitted.EvictSome(evictForFiles, time.Now())
}

package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"egressd/policy"
	"egressd/proxy/internal/socket"
)

// Implementation constants of the dial path.
const (
	resolveTimeout = 10 * time.Second
	dialTimeout    = 20 * time.Second       // over all addresses
	dialStagger    = 250 * time.Millisecond // RFC 8305 section 5
	maxAddrs       = 16                     // addresses tried of one answer

	// evictForFiles is how many connections without a request make room at a time
	// when the process is out of descriptors.
	evictForFiles = 16
)

// resolve finds the addresses of r.Host (hosts entries first, then Resolver; a
// literal is itself) and judges all of them. The addresses
// are nil unless the decision allows.
func (s *Server) resolve(ctx context.Context, c *conn, r policy.Request) ([]netip.Addr, policy.Decision) {
	addrs, d := s.lookup(ctx, r.Host)
	if len(addrs) == 0 {
		return nil, d
	}
	d = s.checkAddrs(c, r, addrs)
	if !d.Allowed() {
		return nil, d
	}
	return addrs, d
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
		return nil, because(resolveReason(err))
	}
	if len(addrs) == 0 {
		return nil, because(policy.ReasonNotFound)
	}
	return addrs, policy.Decision{}
}

// resolveReason maps a Resolver's error. Resolvers that know better say so
// with a PolicyReason method.
func resolveReason(err error) policy.Reason {
	var known interface{ PolicyReason() policy.Reason }
	var dns *net.DNSError
	switch {
	case errors.As(err, &known):
		return known.PolicyReason()
	case errors.As(err, &dns) && dns.IsNotFound:
		return policy.ReasonNotFound
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return policy.ReasonDNSTimeout
	}
	return policy.ReasonDNSError
}

// dialled is a connection to the address that was judged, or the reason why
// there is none.
type dialled struct {
	c    net.Conn // nil unless d allows
	addr netip.Addr
	d    policy.Decision
}

// dialAddrs connects to one of addrs, all of which resolve has judged for r.
// The caller closes the connection.
func (s *Server) dialAddrs(ctx context.Context, c *conn, r policy.Request, addrs []netip.Addr) dialled {
	if len(addrs) == 0 {
		return dialled{d: because(policy.ReasonNotFound)}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs = interleave(addrs)
	if len(addrs) == 1 {
		return s.attempt(ctx, c, r, addrs[0])
	}
	return s.race(ctx, c, r, addrs)
}

// dial is resolve followed by dialAddrs. The connection is nil unless the
// decision allows; the caller closes it.
func (s *Server) dial(ctx context.Context, c *conn, r policy.Request) (net.Conn, policy.Decision) {
	addrs, d := s.resolve(ctx, c, r)
	if !d.Allowed() {
		return nil, d
	}
	got := s.dialAddrs(ctx, c, r, addrs)
	return got.c, got.d
}

// deniedDial carries the last check's denial out of net.Dialer.
type deniedDial struct{ d policy.Decision }

func (e *deniedDial) Error() string { return "denied: " + e.d.Reason.String() }

// attempt connects to one address.
func (s *Server) attempt(ctx context.Context, from *conn, r policy.Request, a netip.Addr) dialled {
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
				return &deniedDial{because(policy.ReasonInternal)}
			}
			r.Addr = got.Addr()
			if final = s.check(from, r); !final.Allowed() {
				return &deniedDial{final}
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
	for i := 0; err == nil && s.Resets.hits(socket.AddrPort(c.LocalAddr()), want, s.now()); i++ {
		_ = c.Close() // it has come back to us
		if i == redials {
			return dialled{d: because(policy.ReasonUnreachable)}
		}
		c, err = connect(ctx, "tcp", want.String())
	}
	if err != nil {
		return dialled{d: dialDecision(err)}
	}
	return dialled{c, a, final}
}

func dialDecision(err error) policy.Decision {
	var dd *deniedDial
	if errors.As(err, &dd) {
		return dd.d
	}
	return because(dialReason(err))
}

// freeFiles gives back the descriptors that s can do without.
func (s *Server) freeFiles() {
	s.engine.Trim()
	s.closeIdleUpstreams()
	s.admitted.EvictSome(evictForFiles, time.Now())
}

// dialReason maps what the operating system said.
func dialReason(err error) policy.Reason {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return policy.ReasonRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return policy.ReasonConnectTimeout
	case socket.OutOfFiles(err), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return policy.ReasonOverload
	}
	return policy.ReasonUnreachable
}

// race starts an attempt every dialStagger, or as soon as one has failed, and
// takes the first connection (RFC 8305). It returns after all have ended.
func (s *Server) race(ctx context.Context, from *conn, r policy.Request, addrs []netip.Addr) dialled {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialled, len(addrs))
	try := func(a netip.Addr) {
		got := dialled{d: because(policy.ReasonInternal)}
		defer func() { results <- got }()
		defer from.survive(nil)
		got = s.attempt(ctx, from, r, a)
	}
	stagger := time.NewTicker(dialStagger)
	defer stagger.Stop()
	var won dialled
	last := because(policy.ReasonUnreachable)
	started, ended := 0, 0
	for ended < started || started < len(addrs) && won.c == nil && ctx.Err() == nil {
		if started == ended && won.c == nil {
			go try(addrs[started])
			started++
		}
		select {
		case <-stagger.C:
			if started < len(addrs) && won.c == nil {
				go try(addrs[started])
				started++
			}
		case res := <-results:
			ended++
			switch {
			case res.c == nil:
				last = worse(last, res.d)
			case won.c == nil:
				won = res
				cancel()
			default:
				_ = res.c.Close() // a later winner is not needed
			}
		}
	}
	if won.c == nil {
		return dialled{d: last}
	}
	return won
}

// worse picks the decision that tells the client more: an address that
// answered "no" over one that cannot be reached at all.
func worse(a, b policy.Decision) policy.Decision {
	if b.Reason == policy.ReasonUnreachable && a.Reason != policy.ReasonUnreachable {
		return a
	}
	return b
}

// interleave orders addrs for dialling: the families in turn, starting with
// the first answer's (RFC 8305 section 4), at most maxAddrs.
func interleave(addrs []netip.Addr) []netip.Addr {
	if len(addrs) < 2 {
		return addrs
	}
	var same, other []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(same), len(other)) {
		if i < len(same) {
			out = append(out, same[i])
		}
		if i < len(other) {
			out = append(out, other[i])
		}
	}
	return out[:min(len(out), maxAddrs)]
}

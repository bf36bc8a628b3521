package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"egressd/policy"
)

var errNoSink = errors.New("no event sink: flows that cannot be recorded do not pass")

// resolve finds the addresses of r.Host (hosts entries first, then Resolver; a
// literal is itself) and takes the second look at all of them. The addresses
// are nil unless the decision allows.
func (s *Server) resolve(ctx context.Context, r policy.Request) ([]netip.Addr, policy.Decision) {
	return nil, policy.Decision{}
}

// dialAddrs connects to one of addrs, all of which resolve has judged for r.
// The connection is nil unless the decision allows; the caller closes it.
func (s *Server) dialAddrs(ctx context.Context, r policy.Request, addrs []netip.Addr) (net.Conn, policy.Decision) {
	return nil, policy.Decision{}
}

// dial is resolve followed by dialAddrs.
func (s *Server) dial(ctx context.Context, r policy.Request) (net.Conn, policy.Decision) {
	addrs, d := s.resolve(ctx, r)
	if !d.Allowed() {
		return nil, d
	}
	return s.dialAddrs(ctx, r, addrs)
}

package proxy

import (
	"context"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/wire"
)

// explicit serves one connection to the explicit listener: what it speaks is
// recognised by its first bytes.
func (s *Server) explicit(ctx context.Context, c *conn) {
	_ = c.SetDeadline(time.Now().Add(c.v.patience(s.bounds().headTimeout))) // fails only on a closed connection: the read says so
	c.v.whenDraining(func() { _ = c.v.conn.SetReadDeadline(time.Now().Add(drainPatience)) })
	err := c.more(pooledBytes)
	c.v.whenDraining(nil)
	if err != nil {
		if c.v.isEvicted() {
			s.drops.add(c.v.door, dropQuiet)
		}
		return // nothing was asked for
	}
	switch b := c.held()[0]; {
	case b == wire.Socks5Version:
		s.socks5(ctx, c)
	case b == wire.Socks4Version:
		s.socks4(ctx, c)
	case b > ' ' && b < 0x7f:
		s.http(ctx, c)
	default:
		s.junk(ctx, c, b)
	}
}

// http tells CONNECT, which has a path of its own, from other requests.
func (s *Server) http(ctx context.Context, c *conn) {
	for {
		switch wire.IsConnect(c.held()) {
		case wire.Done:
			s.connectDoor(ctx, c)
			return
		case wire.Other:
			if c.v.over() != "" {
				s.newHTTPFlow(ctx, c).refuse(because(policy.ReasonOverload), "")
				return
			}
			_ = c.SetDeadline(time.Time{})
			s.serveHTTP(ctx, c, scope{door: event.DoorHTTP, client: peer(c)})
			return
		default:
			if err := c.more(pooledBytes); err != nil {
				f := s.newHTTPFlow(ctx, c)
				reason, detail := f.readReason(err, policy.ReasonMalformed)
				f.refuse(because(reason), detail)
				return
			}
		}
	}
}

// newHTTPFlow is for what is refused before it is known to be CONNECT.
func (s *Server) newHTTPFlow(ctx context.Context, c *conn) *flow {
	f := s.newConnectFlow(ctx, c)
	f.sc.door = event.DoorHTTP
	return f
}

// junk refuses what no door speaks: TLS to the proxy port, binary noise.
func (s *Server) junk(ctx context.Context, c *conn, first byte) {
	f := s.newHTTPFlow(ctx, c)
	if first == 0x16 {
		f.report(policy.Decision{Reason: policy.ReasonMalformed}, "")
		f.alert()
		return
	}
	f.refuse(because(policy.ReasonMalformed), "this port speaks HTTP proxying and SOCKS; these bytes are neither")
}

package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"egressd/event"
	"egressd/internal/wire"
	"egressd/policy"
)

// explicit serves one connection to the explicit listener: what it speaks is
// recognised by its first bytes.
func (s *Server) explicit(ctx context.Context, c *conn) {
	_ = c.SetDeadline(time.Now().Add(headTimeout)) // fails only on a closed connection: the read says so
	if err := c.more(pooledBytes); err != nil {
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
			if overLimit(ctx) {
				f := s.newConnectFlow(ctx, c, peer(c))
				f.sc.door = event.DoorHTTP
				f.refuse(because(policy.ReasonOverload), "")
				return
			}
			_ = c.SetDeadline(time.Time{})
			s.serveHTTP(ctx, c, scope{door: event.DoorHTTP, client: peer(c)})
			return
		default:
			if err := c.more(pooledBytes); err != nil {
				return
			}
		}
	}
}

// junk refuses what no door speaks: TLS to the proxy port, binary noise.
func (s *Server) junk(ctx context.Context, c *conn, first byte) {
	f := s.newConnectFlow(ctx, c, peer(c))
	f.sc.door = event.DoorHTTP
	if first == 0x16 {
		f.report(policy.Decision{Reason: policy.ReasonMalformed}, "")
		f.alert()
		return
	}
	f.refuse(because(policy.ReasonMalformed), "this port speaks HTTP proxying and SOCKS; these bytes are neither")
}

// readReason maps an error while a client was to say what it wants.
func readReason(err error) policy.Reason {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return policy.ReasonHeadTimeout
	case errors.Is(err, io.EOF), errors.Is(err, errTooLong):
		return policy.ReasonMalformed
	}
	return policy.ReasonMalformed
}

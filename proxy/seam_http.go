package proxy

// This file holds the seam to the HTTP half of the package until that half is
// in place (http.go, intercept.go, deny.go).

import (
	"context"
	"net"

	"egressd/policy"
)

// serveHTTP serves HTTP/1 on c within sc until c is done. It closes c. Bytes
// that were read to recognise the protocol are read again from c.
func (s *Server) serveHTTP(ctx context.Context, c net.Conn, sc scope) { c.Close() }

// serveIntercept terminates TLS on c, which starts with a ClientHello that has
// been judged already (r.Wire, r.Server), and serves the requests inside. It
// closes c.
func (s *Server) serveIntercept(ctx context.Context, c net.Conn, sc scope) { c.Close() }

// denyHTTP writes the response for d (403, 400, 502, 503, 504) to c. It does not
// close c. detail says what was wrong with a request that could not be read;
// r.Host is zero then.
func (s *Server) denyHTTP(c net.Conn, r policy.Request, d policy.Decision, detail string) {}

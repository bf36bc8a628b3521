package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/proxy/internal/denial"
)

var errOtherName = errors.New("the server name is not the judged host")

// serveIntercept terminates TLS on in, which is what c carries and starts with a
// ClientHello that has been judged already, and serves the requests inside: HTTP
// with one fixed host, whose origin is https. It closes in.
//
// HTTP/1.1 is the one protocol it agrees to (ALPN): every client that speaks
// HTTP/2 falls back to it, and one strict reading of requests serves all doors.
// A client that insists on h2 (gRPC) cannot use an intercepted host.
func (s *Server) serveIntercept(ctx context.Context, c *conn, in net.Conn, sc scope) {
	sc.door, sc.tls = event.DoorIntercept, true
	r := policy.Request{Host: sc.host, Port: sc.port, Wire: policy.WireTLS, SNI: sc.host}
	if s.CA == nil {
		s.reportIntercept(sc, r, "this run has no certificate authority")
		refuseIntercept(in)
		return
	}
	leaf, err := s.CA.Leaf(sc.host.String())
	if err != nil {
		s.reportIntercept(sc, r, "the host was added after this run's certificate authority was made; start the run again")
		refuseIntercept(in)
		return
	}
	inside := tls.Server(in, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		Certificates:       []tls.Certificate{*leaf},
		GetConfigForClient: sameName(sc.host),
	})
	hctx, cancel := context.WithTimeout(ctx, s.bounds().helloTimeout)
	start := s.Took.Start()
	err = inside.HandshakeContext(hctx)
	s.Took.Since(phase.ClientTLS, sc.flow, start)
	cancel()
	if err != nil {
		s.reportIntercept(sc, r, denial.HandshakeDetail(err))
		_ = in.Close()
		return
	}
	_ = inside.SetDeadline(time.Time{}) // fails with the connection, as the next read does
	s.serveHTTP(ctx, c, inside, sc)
}

// sameName compares the server name once more, as crypto/tls reads it.
//
// Threat: a ClientHello that the gate's scanner and crypto/tls read differently
// would be judged under one name and served under another -> the second reading
// is compared too; an address carries no server name -> no residue.
func sameName(h policy.Host) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == "" && h.Addr().IsValid() {
			return nil, nil
		}
		got, err := policy.ParseHost(hello.ServerName)
		if err != nil || got != h {
			return nil, errOtherName
		}
		return nil, nil
	}
}

// reportIntercept records that the requests of a flow cannot be judged.
func (s *Server) reportIntercept(sc scope, r policy.Request, detail string) {
	ev := s.decisionEvent(sc, r, policy.Decision{Reason: policy.ReasonInterceptOff}, netip.AddrPort{})
	ev.Error = clip(detail)
	s.deny(ev)
}

// refuseIntercept ends a connection with a TLS alert.
func refuseIntercept(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(denial.WriteTimeout)) // the connection ends either way
	_, _ = c.Write(accessDenied[:])
	_ = c.Close()
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/elazarl/goproxy"

	"egressd/policy"
)

// Implementation constants.
const (
	maxIdleUpstream        = 512 // kept connections in all
	maxIdleUpstreamPerHost = 64
	upstreamIdleTimeout    = 90 * time.Second
	upstreamTLSTimeout     = 10 * time.Second
	// upstreamHeadTimeout bounds the wait for a response head. A model may
	// think for minutes before it answers a request that does not stream.
	upstreamHeadTimeout  = 30 * time.Minute
	continueTimeout      = time.Second
	maxResponseHeadBytes = 256 << 10
)

var errNotRecorded = errors.New("the event was not recorded")

// upstreams is the pool of connections to origins that were dialled under one
// policy. The transport keeps them by scheme, host and port of the judged
// request, so a connection is used again only for the host and port it was
// judged and dialled for.
//
// Threat: a connection dialled while an older policy allowed its address serves
// a request after the policy changed -> each policy has its own pool, and the
// old one is closed at the swap, and once more when the last request through it
// is done -> a response that is under way at the swap goes on until it is judged
// again ([Server.Rejudge]).
type upstreams struct {
	s         *Server
	policy    *policy.Policy
	transport *http.Transport
	forwarder *goproxy.ProxyHttpServer

	// Guarded by upstreamPool.mu.
	users   int  // requests under way
	retired bool // no longer in force
}

// done ends the use that upstreamsFor began.
func (u *upstreams) done() {
	u.s.pool.mu.Lock()
	u.users--
	last := u.retired && u.users == 0
	u.s.pool.mu.Unlock()
	if last {
		u.transport.CloseIdleConnections()
	}
}

// upstreamPool holds the pool of the policy in force.
type upstreamPool struct {
	mu  sync.Mutex
	cur *upstreams
}

// retire closes the idle connections of the pool in use; the next request
// begins another one.
func (p *upstreamPool) retire() {
	if p.cur != nil {
		p.cur.retired = true
		p.cur.transport.CloseIdleConnections()
		p.cur = nil
	}
}

// upstreamsFor reports the pool of p, or nil when p is no longer in force: the
// request must be judged again. Where it is not nil, done must follow.
func (s *Server) upstreamsFor(p *policy.Policy) *upstreams {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.inForce() != p {
		return nil
	}
	if s.pool.cur == nil || s.pool.cur.policy != p {
		s.pool.retire()
		s.pool.cur = &upstreams{s: s, policy: p, transport: s.newTransport(), forwarder: newForwarder()}
	}
	s.pool.cur.users++
	return s.pool.cur
}

// closeUpstreams closes every kept connection. Requests after it open new ones.
func (s *Server) closeUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.retire()
}

// retireUpstreams closes the kept connections that were dialled under another
// policy than the one in force.
func (s *Server) retireUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.cur != nil && s.pool.cur.policy != s.inForce() {
		s.pool.retire()
	}
}

// closeIdleUpstreams closes the kept connections, for their descriptors.
func (s *Server) closeIdleUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.cur != nil {
		s.pool.cur.transport.CloseIdleConnections()
	}
}

// newTransport builds the way to the origins: no proxy of the environment, no
// compression of its own, HTTP/1.1, certificates always verified.
func (s *Server) newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            s.dialUpstream,
		TLSClientConfig:        &tls.Config{RootCAs: s.RootCAs, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
		TLSHandshakeTimeout:    upstreamTLSTimeout,
		DisableCompression:     true,
		MaxIdleConns:           maxIdleUpstream,
		MaxIdleConnsPerHost:    maxIdleUpstreamPerHost,
		IdleConnTimeout:        upstreamIdleTimeout,
		ResponseHeaderTimeout:  upstreamHeadTimeout,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxResponseHeadBytes,
	}
}

// dialUpstream resolves, judges and dials the host of the exchange that ctx
// belongs to. addr is what the transport keeps the connection under.
func (s *Server) dialUpstream(ctx context.Context, _, addr string) (c net.Conn, err error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok || x.authority() != addr {
		return nil, fmt.Errorf("dial %s: not the judged authority", addr) // unreachable
	}
	// The transport dials in a goroutine of its own.
	defer x.h.c.survive(func() { c, err = nil, &deniedDial{because(policy.ReasonInternal)} })
	got, d := s.dial(ctx, x.h.c, x.req)
	if !d.Allowed() {
		return nil, &deniedDial{d}
	}
	return &upstreamConn{Conn: got, total: &s.carried}, nil
}

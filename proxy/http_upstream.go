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
// old one is closed at the swap -> a response that is under way at the swap goes
// on until it is judged again ([Server.Rejudge]).
type upstreams struct {
	policy    *policy.Policy
	transport *http.Transport
	forwarder *goproxy.ProxyHttpServer
}

// upstreamPool holds the pool of the policy in force.
type upstreamPool struct {
	mu  sync.Mutex
	cur *upstreams
}

// upstreamsFor reports the pool of p, or nil when p is no longer in force: the
// request must be judged again.
func (s *Server) upstreamsFor(p *policy.Policy) *upstreams {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.inForce() != p {
		return nil
	}
	if s.pool.cur != nil && s.pool.cur.policy == p {
		return s.pool.cur
	}
	if s.pool.cur != nil {
		s.pool.cur.transport.CloseIdleConnections()
	}
	s.pool.cur = &upstreams{policy: p, transport: s.newTransport(), forwarder: newForwarder()}
	return s.pool.cur
}

// closeUpstreams closes every kept connection. Requests after it open new ones.
func (s *Server) closeUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.cur != nil {
		s.pool.cur.transport.CloseIdleConnections()
		s.pool.cur = nil
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
func (s *Server) dialUpstream(ctx context.Context, _, addr string) (net.Conn, error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok || x.authority() != addr {
		return nil, fmt.Errorf("dial %s: not the judged authority", addr) // unreachable
	}
	c, d := s.dial(ctx, x.judged)
	if !d.Allowed() {
		return nil, &deniedDial{d}
	}
	return c, nil
}

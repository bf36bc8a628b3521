package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"egressd/event/phase"
	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/internal/exit"
)

// evictForFiles is how many connections without a request make room at a time when the
// process is out of descriptors. Implementation constant.
const evictForFiles = 16

// UpstreamAccess is what it takes to use an upstream proxy, besides its address.
type UpstreamAccess = exit.Access

// leaving is how the flows of c leave.
func (s *Server) leaving(c *conn) exit.Dialer {
	return exit.Dialer{Judge: judgeOf{s, c}, Resolver: s.Resolver, Resets: s.Resets, Access: s.Upstream, Connect: s.dialFunc}
}

// judgeOf is the judge of the flows of one connection: see [exit.Judge].
type judgeOf struct {
	s *Server
	c *conn
}

func (j judgeOf) Check(r policy.Request) policy.Decision     { return j.s.check(j.c, r) }
func (j judgeOf) CheckAddr(r policy.Request) policy.Decision { return j.s.checkAddr(j.c, r) }
func (j judgeOf) Loops(r policy.Request) bool                { return j.s.loops(j.c, r) }
func (j judgeOf) FreeFiles()                                 { j.s.freeFiles() }

// Survive recovers itself: a function that it called could not.
func (j judgeOf) Survive() {
	if r := recover(); r != nil {
		j.c.panicked(r, debug.Stack())
	}
}

func (j judgeOf) CheckAddrs(r policy.Request, addrs []netip.Addr) policy.Decision {
	return j.s.checkAddrs(j.c, r, addrs)
}

// freeFiles gives back the descriptors that s can do without.
func (s *Server) freeFiles() {
	s.engine.Trim()
	s.pool.CloseIdle()
	s.admitted.EvictSome(evictForFiles, time.Now())
}

// deniedDial carries a denial through the transport.
type deniedDial struct {
	d      policy.Decision
	detail string
	addr   netip.Addr // that was refused; zero: none was
}

func (e *deniedDial) Error() string {
	if e.detail != "" {
		return e.detail
	}
	return "denied: " + e.d.Reason.String()
}

// through reports the upstream proxy that the request leaves through, and whether it is
// sent there in absolute form: what is not TLS, where the proxy looks names up. Proxies
// of companies refuse CONNECT to port 80.
func (x *exchange) through() (via *upstream.Proxy, absolute bool) {
	via = x.up.Policy.Upstream()
	if via.Bypasses(x.req.Host.Name(), x.req.Host.Addr(), x.req.Port) {
		return nil, false
	}
	return via, via.AtProxy && !x.sc.tls && x.req.Host.Name() != "" && len(x.up.Policy.Static(x.req.Host)) == 0
}

// Dial implements forward.Gate: it resolves, judges and dials the host of the request.
func (x *exchange) Dial(ctx context.Context) (net.Conn, error) {
	dialer := x.h.s.leaving(x.h.c)
	way, d := dialer.Find(ctx, x.up.Policy, x.req)
	_, absolute := x.through()
	switch {
	case !d.Allowed():
		return nil, &deniedDial{d, way.Detail, way.Refused}
	case absolute && way.Via == nil:
		return nil, &deniedDial{d: because(policy.ReasonIPProhibited), detail: "the name leads to this machine, and names are looked up at the upstream proxy"}
	}
	var got exit.Result
	if absolute {
		got = dialer.Open(ctx, x.req, way.Via)
	} else {
		got = dialer.Dial(ctx, x.req, way)
	}
	x.h.s.Took.Lasted(phase.Dial, x.sc.flow, got.Took)
	if got.Conn == nil {
		return nil, &deniedDial{d: got.Decision, detail: got.Detail}
	}
	return got.HTTP(x.req.Port, way), nil
}

// login reports the login for the upstream proxy that a request in absolute form has.
func (x *exchange) login(via *upstream.Proxy, absolute bool) (string, error) {
	if !absolute {
		return "", nil
	}
	value, err := x.h.s.leaving(x.h.c).Login(via)
	if err != nil {
		return "", &deniedDial{d: because(policy.ReasonProxyFailed), detail: err.Error()}
	}
	return value, nil
}

// refusedByProxy is the error of an answer that is not the origin's: the upstream proxy
// wants a login.
//
// Threat: the proxy's 407 reaches the program, which answers with what credentials it
// has, or asks the person for the company's -> it ends here. Left over: a 403 or 502 in
// answer to a request in absolute form cannot be told from the origin's; it is passed on.
func (x *exchange) refusedByProxy(resp *http.Response) error {
	if _, absolute := x.through(); !absolute || resp.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	reason, detail := exit.Refusal(resp, resp.Request != nil && resp.Request.Header.Get("Proxy-Authorization") != "")
	return &deniedDial{d: because(reason), detail: detail}
}

// deniedOnTheWay reports the denial in err.
func deniedOnTheWay(err error) (*deniedDial, bool) {
	var dd *deniedDial
	ok := errors.As(err, &dd)
	return dd, ok
}

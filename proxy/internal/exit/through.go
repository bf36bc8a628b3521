package exit

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/socket"
)

// maxTargets is how many addresses of a name the upstream proxy is asked for in turn.
const maxTargets = 4

// through asks the upstream proxy for r: for each judged address until it connects, or
// for the name.
func (d Dialer) through(ctx context.Context, r policy.Request, w Way) Result {
	access, err := d.access(w.Via)
	if err != nil {
		return Result{Result: dial.Result{Decision: because(policy.ReasonProxyFailed)}, Detail: err.Error()}
	}
	if len(w.Addrs) == 0 {
		return d.ask(ctx, r, w.Via, access)
	}
	last := Result{Result: dial.Result{Decision: because(policy.ReasonNotFound)}}
	for _, a := range dial.Interleave(w.Addrs)[:min(len(w.Addrs), maxTargets)] {
		r.Addr = a
		last = d.ask(ctx, r, w.Via, access)
		if last.Conn != nil || !elsewhere(last.Decision.Reason) || ctx.Err() != nil {
			break
		}
	}
	return last
}

// elsewhere reports whether another address may work where one failed with r.
func elsewhere(r policy.Reason) bool {
	return r == policy.ReasonUnreachable || r == policy.ReasonConnectTimeout || r == policy.ReasonIPProhibited
}

// access reports how u is used.
func (d Dialer) access(u *upstream.Proxy) (Access, error) {
	if d.Access == nil {
		return Access{}, nil
	}
	return d.Access(u)
}

// ask has the upstream proxy connect to r.Addr, or to r.Host if r has no address.
func (d Dialer) ask(ctx context.Context, r policy.Request, u *upstream.Proxy, access Access) Result {
	final := d.Check(r)
	if r.Addr.IsValid() {
		final = d.CheckAddr(r) // as before a dial: the policy may be another one by now
	}
	if !final.Allowed() {
		return Result{Result: dial.Result{Decision: final}}
	}
	c, no := d.toProxy(ctx, u, access)
	if c == nil {
		return no
	}
	host := r.Host.String()
	if r.Addr.IsValid() {
		host = r.Addr.String()
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	status, err := handshake(c, net.JoinHostPort(host, strconv.Itoa(int(r.Port))), access.Login)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && status.code/100 == 2 {
		_ = c.SetDeadline(time.Time{})
		return Result{Result: dial.Result{Conn: c, Addr: r.Addr, Decision: final}}
	}
	_ = c.Close()
	if err != nil {
		return failed(err)
	}
	reason, detail := status.meaning(access.Login != "")
	return Result{Result: dial.Result{Decision: because(reason)}, Detail: detail}
}

// failed is the result of an upstream proxy that gave no answer.
func failed(err error) Result {
	detail := "the upstream proxy closed the connection without an answer"
	var timed interface{ Timeout() bool }
	switch {
	case errors.Is(err, errHead):
		detail = err.Error()
	case errors.As(err, &timed) && timed.Timeout(), errors.Is(err, context.DeadlineExceeded):
		detail = "the upstream proxy did not answer in time"
	}
	return Result{Result: dial.Result{Decision: because(policy.ReasonProxyFailed)}, Detail: detail}
}

// Open connects to the upstream proxy itself, for requests in absolute form. The login
// goes with each request: see [Dialer.Login].
func (d Dialer) Open(ctx context.Context, r policy.Request, u *upstream.Proxy) Result {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	final := d.Check(r)
	if !final.Allowed() {
		return Result{Result: dial.Result{Decision: final}}
	}
	access, err := d.access(u)
	if err != nil {
		return Result{Result: dial.Result{Decision: because(policy.ReasonProxyFailed)}, Detail: err.Error()}
	}
	c, no := d.toProxy(ctx, u, access)
	if c == nil {
		return no
	}
	return Result{Result: dial.Result{Conn: c, Decision: final}}
}

// Login reports the value of Proxy-Authorization for u; "": none is sent.
func (d Dialer) Login(u *upstream.Proxy) (string, error) {
	access, err := d.access(u)
	if err != nil || access.Login == "" {
		return "", err
	}
	return basic(access.Login), nil
}

func basic(login string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(login))
}

// toProxy connects to u, by TLS if u wants that.
//
// Threat: the upstream proxy is one of the gate's own listeners, so that each flow comes
// back as another until the gate is full -> every address of the proxy is compared with
// them before it is dialled. Left over: a chain of proxies on other machines that ends
// here; the limits on connections bound it.
func (d Dialer) toProxy(ctx context.Context, u *upstream.Proxy, access Access) (net.Conn, Result) {
	no := func(reason policy.Reason, detail string) (net.Conn, Result) {
		return nil, Result{Result: dial.Result{Decision: because(reason)}, Detail: detail}
	}
	addrs, err := d.proxyAddrs(ctx, u)
	if err != nil {
		return no(policy.ReasonProxyFailed, "the name of the upstream proxy cannot be looked up")
	}
	got := d.race(ctx, addrs, func(ctx context.Context, a netip.Addr) dial.Result {
		c, no := d.connect(ctx, netip.AddrPortFrom(a, u.Port), func(at netip.AddrPort) (policy.Decision, bool) {
			host := policy.HostFromAddr(at.Addr())
			if d.Loops(policy.Request{Host: host, Addr: at.Addr(), Port: at.Port()}) {
				return because(policy.ReasonLoop), false
			}
			return policy.Decision{}, true
		})
		return dial.Result{Conn: c, Addr: a, Decision: no}
	})
	if got.Conn == nil {
		switch got.Decision.Reason {
		case policy.ReasonLoop:
			return no(policy.ReasonLoop, "the upstream proxy is the gate itself")
		case policy.ReasonOverload:
			return no(policy.ReasonOverload, "")
		case policy.ReasonRefused:
			return no(policy.ReasonProxyFailed, "the upstream proxy refused the connection")
		case policy.ReasonConnectTimeout:
			return no(policy.ReasonProxyFailed, "the upstream proxy did not answer in time")
		default:
			return no(policy.ReasonProxyFailed, "the upstream proxy cannot be reached")
		}
	}
	if !u.TLS {
		return got.Conn, Result{}
	}
	name := u.Name
	if name == "" {
		name = u.Addr.String()
	}
	inside := tls.Client(got.Conn, &tls.Config{
		ServerName: name, RootCAs: access.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	if err := inside.HandshakeContext(ctx); err != nil {
		_ = got.Conn.Close()
		var cert *tls.CertificateVerificationError
		if errors.As(err, &cert) {
			return no(policy.ReasonProxyFailed, "the certificate of the upstream proxy does not verify: "+cert.Err.Error())
		}
		return no(policy.ReasonProxyFailed, "the TLS handshake with the upstream proxy failed")
	}
	return &tlsConn{inside}, Result{}
}

// HTTP is r.Conn for requests: its remote address is the judged one, and none where the
// upstream proxy looks the name up.
func (r Result) HTTP(port uint16, w Way) net.Conn {
	if w.Via == nil {
		return r.Conn
	}
	c := &beyond{Conn: r.Conn}
	if r.Addr.IsValid() {
		c.addr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(r.Addr, port))
	}
	return c
}

// beyond is a connection to what is beyond the upstream proxy.
type beyond struct {
	net.Conn
	addr *net.TCPAddr // nil: not known
}

// RemoteAddr implements net.Conn.
func (c *beyond) RemoteAddr() net.Addr {
	if c.addr == nil {
		return nowhere{}
	}
	return c.addr
}

// Direct is the connection to the upstream proxy.
func (c *beyond) Direct() net.Conn { return c.Conn }

// CloseWrite ends the sending half.
func (c *beyond) CloseWrite() error { return socket.HalfClose(c.Conn) }

// nowhere is the address of an origin that the upstream proxy alone knows.
type nowhere struct{}

// Network implements net.Addr.
func (nowhere) Network() string { return "tcp" }

// String implements net.Addr.
func (nowhere) String() string { return "" }

// tlsConn is a connection inside TLS to the upstream proxy that can be reset.
type tlsConn struct{ *tls.Conn }

// SetLinger is that of the connection around it.
func (c *tlsConn) SetLinger(sec int) error {
	if l, ok := c.NetConn().(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// proxyAddrs looks the upstream proxy itself up, which no rule has to allow.
func (d Dialer) proxyAddrs(ctx context.Context, u *upstream.Proxy) ([]netip.Addr, error) {
	if u.Addr.IsValid() {
		return []netip.Addr{u.Addr}, nil
	}
	host, err := policy.ParseHost(u.Name)
	if err != nil || d.Resolver == nil {
		return nil, errors.New("no resolver")
	}
	return d.Resolver.Lookup(ctx, host)
}

// isProxy reports whether r is a flow to the upstream proxy itself.
//
// Threat: a rule covers the proxy (a wildcard of the company's domain, its network), and
// a client asks the gate for the proxy and then the proxy for anything, unjudged -> the
// proxy's name and its addresses are refused on its port, whatever allows them. If its
// name cannot be looked up, so is every address on that port. Left over: another proxy
// on the same network, and other ports of this one.
func (d Dialer) isProxy(ctx context.Context, u *upstream.Proxy, r policy.Request, addrs []netip.Addr) bool {
	if u == nil || r.Port != u.Port {
		return false
	}
	if r.Host.Name() != "" && r.Host.Name() == u.Name {
		return true
	}
	if len(addrs) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, LookupTimeout)
	defer cancel()
	own, err := d.proxyAddrs(ctx, u)
	return err != nil || slices.ContainsFunc(addrs, func(a netip.Addr) bool { return slices.Contains(own, a.Unmap()) })
}

// Refusal is why resp, a 407 of the upstream proxy, is no answer of the origin. sent:
// the request had a login.
func Refusal(resp *http.Response, sent bool) (policy.Reason, string) {
	return status{code: resp.StatusCode, schemes: schemes(resp.Header)}.meaning(sent)
}

// meaning is why a flow failed that the upstream proxy did not connect. sent: it was
// given a login.
//
// Threat: the proxy's answer carries text into events and terminals -> of its bytes, the
// status code and the names of known schemes are used, nothing else. Left over: nothing.
func (s status) meaning(sent bool) (policy.Reason, string) {
	answer := "the upstream proxy answered " + strconv.Itoa(s.code)
	if text := http.StatusText(s.code); text != "" {
		answer += " " + text
	}
	switch s.code {
	case http.StatusProxyAuthRequired, http.StatusUnauthorized: // 401 is tinyproxy's word for a wrong login
		switch {
		case !slices.Contains(s.schemes, "Basic") && len(s.schemes) > 0:
			return policy.ReasonProxyLogin, "the upstream proxy wants a login that the gate does not speak (" + s.scheme() + "): run a helper that does, such as cntlm or px, and name that as the upstream proxy"
		case sent:
			return policy.ReasonProxyLogin, "the upstream proxy does not take this login"
		}
		return policy.ReasonProxyLogin, "the upstream proxy wants a login"
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return policy.ReasonUnreachable, answer
	case http.StatusGatewayTimeout:
		return policy.ReasonConnectTimeout, answer
	}
	return policy.ReasonProxyRefused, answer
}

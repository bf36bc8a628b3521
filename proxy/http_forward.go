package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elazarl/goproxy"

	"egressd/policy"
	"egressd/proxy/internal/http1"
)

const maxInformational = 16 // 1xx responses to one request

// exchangeKey finds the exchange in a request's context.
type exchangeKey struct{}

var (
	errUnasked101  = errors.New("the origin switched protocols unasked")
	errTooMany1xx  = errors.New("the origin sent too many 1xx responses")
	errBadUpgrade  = errors.New("the origin switched to a protocol that was not asked for")
	errShortUpload = errors.New("the client broke off its request body")
)

// newForwarder is goproxy as the forwarder behind the judge: by the time it
// sees a request, the request is allowed and its URL is the judged one.
//
// What goproxy leaves open is closed around it: hop-by-hop fields both ways
// ([outgoing], [exchange.RoundTrip]); flushing of streams other than
// text/event-stream, and a response that breaks off half way ([responseWriter]);
// 1xx responses ([exchange.trace]); errors in the gate's own words. Upgrades do
// not pass through it ([exchange.upgrade]): it knows WebSocket alone, and ends
// both directions when one is done.
func newForwarder() *goproxy.ProxyHttpServer {
	f := &goproxy.ProxyHttpServer{ // not NewProxyHttpServer, which reads the environment
		Logger:             discardLogger{},
		KeepAcceptEncoding: true,
		Tr:                 &http.Transport{DialContext: noDial}, // never used: see RoundTripper
		NonproxyHandler:    http.NotFoundHandler(),
	}
	f.OnRequest().DoFunc(useExchange)
	return f
}

// useExchange makes the exchange the round tripper of its request.
func useExchange(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		ctx.RoundTripper = x
	}
	return r, nil
}

func noDial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("a request without an exchange") // unreachable
}

type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

// forward sends the allowed request and its response.
func (x *exchange) forward() {
	defer x.recordEnd()
	ctx, cancel := context.WithCancelCause(context.WithValue(x.r.Context(), exchangeKey{}, x))
	defer cancel(nil)
	x.ctx, x.cancel = ctx, cancel
	x.limit = x.h.s.bounds().bytesPerFlow
	t := &openFlow{c: x.h.c, req: &x.req, stop: x.stop, bytes: &x.moved}
	x.h.s.track(t, x.up.policy)
	defer x.h.s.untrack(t)
	defer x.up.done()
	// A response may begin while the request body is still on its way.
	_ = http.NewResponseController(x.w).EnableFullDuplex() // HTTP/1 always can

	out := x.outgoing(httptrace.WithClientTrace(ctx, x.trace()))
	if out.Header.Get("Upgrade") != "" {
		x.upgrade(out)
		return
	}
	x.relayResponse(out)
}

// stop ends the exchange: the policy now in force denies it, or it went on for
// too long.
func (x *exchange) stop(d policy.Decision, why string) {
	e := &endedBy{d, why}
	if x.ended.CompareAndSwap(nil, e) {
		x.cancel(e)
	}
}

// relayResponse lets goproxy make the round trip and copy the response.
func (x *exchange) relayResponse(out *http.Request) {
	rw := &responseWriter{ResponseWriter: x.w, x: x}
	x.up.forwarder.ServeHTTP(rw, out)
	switch {
	case x.failed != nil:
		x.answerFailure(x.failed)
	case x.broken != nil:
		// The client must see that the response is not whole.
		panic(http.ErrAbortHandler)
	}
}

// outgoing is the request as the origin gets it: the judged authority, the path
// and query as sent, the client's fields without those that are between the
// client and the gate, nothing added.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	if len(x.r.TransferEncoding) > 0 && x.r.Trailer == nil {
		x.r.Trailer = http.Header{} // where net/http puts trailers that were not announced
	}
	out := x.r.WithContext(ctx)
	out.URL = x.outgoingURL()
	out.Host = hostField(x.req, x.sc.tls)
	out.Close = false
	stripHopByHop(out.Header, x.facts.Upgrade)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // else net/http adds its own
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &countedBody{ReadCloser: out.Body, x: x}
	}
	x.h.s.substitute(x.up.policy, x.req, out.Header, x.sc.tls)
	if x.h.s.Rewrite != nil && x.sc.tls {
		x.h.s.Rewrite(x.req.Host.String(), out)
	}
	return out
}

func (x *exchange) outgoingURL() *url.URL {
	u := &url.URL{Scheme: "http", Host: x.authority(), RawQuery: strings.TrimPrefix(x.facts.Query, "?")}
	if x.sc.tls {
		u.Scheme = "https"
	}
	u.ForceQuery = x.facts.Query == "?"
	if strings.HasPrefix(x.facts.Path, "//") {
		// As Opaque it would be taken for an authority. EscapedPath keeps every
		// valid spelling as it is.
		u.RawPath = x.facts.Path
		if p, err := url.PathUnescape(x.facts.Path); err == nil {
			u.Path = p
		} else {
			u.Path, u.RawPath = x.facts.Path, ""
		}
		return u
	}
	u.Opaque = x.facts.Path // untouched, whatever url.Parse thinks of it
	return u
}

// authority is the judged host and port, as the transport spells it.
func (x *exchange) authority() string {
	return net.JoinHostPort(x.req.Host.String(), strconv.Itoa(int(x.req.Port)))
}

// hostField is the Host of the outgoing request: the judged host, and its port
// where it is not the scheme's own.
func hostField(r policy.Request, tls bool) string {
	host := r.Host.String()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !tls && r.Port == 80 || tls && r.Port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(int(r.Port))
}

// hopByHop are the fields that concern one connection alone (RFC 9110 section
// 7.6.1), with those that are not in Connection by custom.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Trailer", "Upgrade", "Http2-Settings",
}

// stripHopByHop removes the fields between two neighbours. TE: trailers and,
// where upgrading, one Upgrade survive. An upgrade to h2c or TLS would take the
// connection out of sight, so it is not offered; the origin answers in HTTP/1.1.
func stripHopByHop(h http.Header, upgrading bool) {
	protocol := strings.Join(h.Values("Upgrade"), ",")
	trailers := http1.IsUpgradeToken(strings.Join(h.Values("Te"), ","), "trailers")
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	if trailers {
		h.Set("Te", "trailers")
	}
	if upgrading && carriesUpgrade(protocol) {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", protocol)
	}
}

func carriesUpgrade(protocol string) bool {
	return protocol != "" && !http1.IsUpgradeToken(protocol, "h2c") &&
		!http1.IsUpgradeToken(protocol, "h2") && !http1.IsUpgradeToken(protocol, "HTTP") && !http1.IsUpgradeToken(protocol, "TLS")
}

// trace records the request before its first byte leaves, and passes on 1xx.
func (x *exchange) trace() *httptrace.ClientTrace {
	informational := 0
	return &httptrace.ClientTrace{
		GotConn: x.gotConn,
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if informational++; informational > maxInformational {
				return errTooMany1xx
			}
			x.inform(code, http.Header(header))
			return nil
		},
	}
}

// gotConn runs after the connection is there and before the request is written
// to it.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.carried.on(info.Conn)
	if err := x.recordAllowed(info.Conn.RemoteAddr().String()); err != nil {
		_ = info.Conn.Close() // so that the write which follows fails
		x.cancel(err)
	}
}

// inform passes a 1xx response on. 100 goes to those who wait for it; HTTP/1.0
// knows none.
func (x *exchange) inform(code int, header http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.h.c.survive(nil) // this runs in a goroutine of the transport
	if x.final || x.facts.Minor == 0 || code == http.StatusContinue && x.r.Header.Get("Expect") == "" {
		return
	}
	fromOrigin(header)
	h := x.w.Header()
	maps.Copy(h, header)
	x.w.WriteHeader(code)
	clear(h)
}

// RoundTrip implements goproxy.RoundTripper.
func (x *exchange) RoundTrip(out *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	resp, err := x.roundTrip(out)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errUnasked101
	}
	if err != nil {
		x.failed = err
		return nil, err
	}
	x.prepare(resp)
	return resp, nil
}

// roundTrip sends the request through the pool.
func (x *exchange) roundTrip(out *http.Request) (*http.Response, error) {
	resp, err := x.up.transport.RoundTrip(out)
	x.mu.Lock()
	x.final = true
	x.mu.Unlock()
	return resp, err
}

// prepare makes the response fit for the client: hop-by-hop fields removed, no
// type guessed, its body watched.
func (x *exchange) prepare(resp *http.Response) {
	fromOrigin(resp.Header)
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := resp.Header[name]; !ok {
			resp.Header[name] = nil // else net/http adds one
		}
	}
	disown(resp.Trailer)
	resp.Body = &watchedBody{ReadCloser: resp.Body, x: x, resp: resp}
}

// answerFailure tells the client why there is no response.
func (x *exchange) answerFailure(err error) {
	if bad := x.h.gate.BodyErr(); bad != nil {
		x.malformed(bad.Detail, bad.Status)
		return
	}
	var dd *deniedDial
	ended := x.ended.Load()
	switch {
	case ended != nil:
		if !x.rec.Allowed() {
			x.recordDenial(ended.d, ended.why)
		}
		denial{req: x.req, dec: ended.d, detail: ended.why, policy: x.h.s.PolicyName, close: true}.write(x.w, x.r)
	case x.rec.Unrecorded():
		x.answerDenial(because(policy.ReasonOverload), "")
	case errors.As(err, &dd):
		x.deny(dd.d, "")
	case x.r.Context().Err() != nil, errors.Is(err, errShortUpload), errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client has gone
	default:
		d, detail := upstreamFailure(err)
		if !x.rec.Allowed() {
			x.recordDenial(d, detail)
		}
		denial{req: x.req, dec: d, detail: detail}.write(x.w, x.r)
	}
}

// upstreamFailure finds the reason behind an error of the transport. The detail
// holds names of ours only, never bytes of the origin.
func upstreamFailure(err error) (policy.Decision, string) {
	var (
		cert   *tls.CertificateVerificationError
		alert  tls.AlertError
		record tls.RecordHeaderError
		timed  interface{ Timeout() bool }
	)
	switch {
	case errors.Is(err, errTooManyBytes):
		return policy.Decision{Reason: policy.ReasonOverload}, err.Error()
	case errors.As(err, &cert):
		return policy.Decision{Reason: policy.ReasonUpstreamTLS}, cert.Err.Error()
	case errors.As(err, &alert), errors.As(err, &record):
		return policy.Decision{Reason: policy.ReasonUpstreamTLS}, "the TLS handshake with the origin failed"
	case errors.As(err, &timed) && timed.Timeout():
		return policy.Decision{Reason: policy.ReasonConnectTimeout}, ""
	case slices.ContainsFunc([]error{errUnasked101, errTooMany1xx, errBadUpgrade}, func(e error) bool { return errors.Is(err, e) }):
		return policy.Decision{Reason: policy.ReasonUpstreamError}, err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return policy.Decision{Reason: policy.ReasonUpstreamError}, "the origin closed the connection before it answered"
	default:
		return policy.Decision{Reason: policy.ReasonUpstreamError}, ""
	}
}

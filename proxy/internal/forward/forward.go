// Package forward carries HTTP requests that were let pass to their origins, and
// the responses back. It knows no policy: its [Gate] is asked at every step that
// lets something pass.
//
//	f := forward.New(forward.Config{Buffers: &buffers})
//	outcome := f.Forward(ctx, forward.Exchange{Request: r, Writer: w, Host: "api.example.com:443", TLS: true, Gate: gate})
//	if outcome.Failed != nil {
//		// nothing was answered: say why
//	}
//
// [Forwarder] is the seam: another way of forwarding is another Forwarder, and
// the doors do not notice. This one has two ways. To a plain-HTTP origin the
// requests go over connections of its own ([exchange.plain]), whose responses
// [http1.Responses] frames strictly. To an https origin they go through goproxy,
// by decree, with the standard library's transport under it. goproxy copies
// responses ([exchange.response]);
// what it leaves open is closed around it: hop-by-hop fields both ways
// ([exchange.dress], [fromOrigin]); flushing of streams other than
// text/event-stream, and a response that breaks off half way ([responseWriter]);
// 1xx responses ([exchange.trace]). Upgrades do not pass through it
// ([exchange.upgrade]): it knows WebSocket alone, and ends both directions when
// one is done.
package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elazarl/goproxy"

	"egressd/proxy/internal/pool"
)

// Implementation constants.
const (
	maxIdle        = 512 // kept connections in all
	maxIdlePerHost = 64
	idleTimeout    = 90 * time.Second
	tlsTimeout     = 10 * time.Second
	// headTimeout bounds the wait for a response head. A model may think for
	// minutes before it answers a request that does not stream.
	headTimeout          = 30 * time.Minute
	continueTimeout      = time.Second
	maxResponseHeadBytes = 256 << 10
	maxInformational     = 16 // 1xx responses to one request
)

// Why an exchange failed although the origin answered, or never got the request.
var (
	ErrUnasked101  = errors.New("the origin switched protocols unasked")
	ErrTooMany1xx  = errors.New("the origin sent too many 1xx responses")
	ErrBadUpgrade  = errors.New("the origin switched to a protocol that was not asked for")
	ErrMalformed   = errors.New("the origin's response is malformed")
	ErrShortUpload = errors.New("the client broke off its request body")
	ErrPanicked    = errors.New("a goroutine of the exchange panicked") // Survive has been called
)

// Forwarder carries exchanges over connections that it keeps for later ones, by
// scheme and Exchange.Host. Safe for concurrent use.
type Forwarder interface {
	// Forward sends x to its origin and the response to x.Writer, and returns
	// when both are done. When ctx ends, so does the exchange.
	Forward(ctx context.Context, x Exchange) Outcome
	// CloseIdle closes the connections without an exchange.
	CloseIdle()
}

// Exchange is one request that was let pass, and where its response goes.
type Exchange struct {
	Request *http.Request // of the client; Forward uses it up
	Writer  http.ResponseWriter

	Host        string // host:port of the judged origin; connections are kept by it
	HostField   string // the Host of the outgoing request
	TLS         bool   // the origin is https
	Absolute    bool   // the connection leads to a proxy, which wants the whole URL
	ProxyLogin  string // with Absolute: the Proxy-Authorization of the request; "": none
	Path, Query string // as sent; Query with its "?"
	HTTP10      bool   // the client speaks HTTP/1.0, which has no 1xx
	Upgrade     bool   // the client offers another protocol (RFC 9110 section 7.8)

	Gate Gate
}

// Gate decides what of an exchange passes. Its methods are called from several
// goroutines, one at a time but for Count.
type Gate interface {
	// Dial connects to the judged origin. Forward closes the connection.
	Dial(ctx context.Context) (net.Conn, error)
	// Pass is called before the first byte of the request goes out, over a
	// connection to addr. An error: no byte goes.
	Pass(addr net.Addr) error
	// Outgoing may change the request as it leaves.
	Outgoing(r *http.Request)
	// Incoming may change a response before any of it goes to the client, and
	// put another reader in the place of its Body: content, or what arrives after
	// a 101. An error: nothing of the response goes on.
	Incoming(resp *http.Response) error
	// Fields may change the fields of a 1xx response, and trailers.
	Fields(h http.Header)
	// Count is called with the length of every piece of content, either way,
	// before it is sent on. An error: it is not.
	Count(n int) error
	// Upgraded is called before the client's connection is taken over for
	// another protocol. Forward closes it at the end.
	Upgraded()
	// Survive is deferred by every goroutine but the caller's: it must recover
	// from a panic, and call cleanup then if it is not nil.
	Survive(cleanup func())
}

// Outcome is what became of an exchange.
type Outcome struct {
	Failed         error // nothing was answered, because of this
	Broken         error // the response broke off half way, because of this
	Sent, Received int64 // bytes over the connections to the origin, heads and TLS records included
}

// Config is what a Forwarder is made of.
type Config struct {
	RootCAs        *x509.CertPool // verifies origins; nil: the system's roots
	Buffers        *pool.Buffers  // for bodies on their way
	Sent, Received *atomic.Uint64 // totals to add to
}

// proxy is goproxy with a transport: the one [Forwarder].
type proxy struct {
	Config
	transport *http.Transport // to https origins, and for upgrades
	copier    *goproxy.ProxyHttpServer

	kept     kept          // connections to plain-HTTP origins
	heads    pool.Buffers  // of headBufferBytes
	patience time.Duration // for the origin's 100
}

// New makes a Forwarder: no proxy of the environment, no compression of its own,
// HTTP/1.1, certificates always verified.
func New(c Config) Forwarder {
	p := &proxy{Config: c, patience: continueTimeout}
	p.transport = &http.Transport{
		DialContext:            p.dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
		TLSHandshakeTimeout:    tlsTimeout,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		ResponseHeaderTimeout:  headTimeout,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxResponseHeadBytes,
	}
	p.copier = &goproxy.ProxyHttpServer{ // not NewProxyHttpServer, which reads the environment
		Logger:             discardLogger{},
		KeepAcceptEncoding: true,
		Tr:                 &http.Transport{DialContext: noDial}, // never used: see RoundTripper
		NonproxyHandler:    http.NotFoundHandler(),
	}
	p.copier.OnRequest().DoFunc(useExchange)
	return p
}

// exchangeKey finds the exchange in the context of its request. It is the one
// way in: a transport gives its dialler, and goproxy its handlers, nothing of
// the caller's but that context.
type exchangeKey struct{}

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

// dial connects to the origin of the exchange that ctx belongs to. addr is what
// the transport keeps the connection under.
func (p *proxy) dial(ctx context.Context, _, addr string) (c net.Conn, err error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok || x.Host != addr {
		return nil, fmt.Errorf("dial %s: not the judged authority", addr) // unreachable
	}
	o, err := x.dial(ctx) // in a goroutine of the transport
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (x *exchange) dial(ctx context.Context) (o *originConn, err error) {
	defer x.Gate.Survive(func() { o, err = nil, ErrPanicked })
	got, err := x.Gate.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &originConn{Conn: got, totalSent: x.p.Sent, totalArrived: x.p.Received}, nil
}

// CloseIdle implements [Forwarder].
func (p *proxy) CloseIdle() {
	p.transport.CloseIdleConnections()
	p.kept.close()
}

// exchange is an Exchange under way.
type exchange struct {
	Exchange
	p      *proxy
	ctx    context.Context // ended by cancel
	cancel context.CancelCauseFunc

	mu        sync.Mutex // guards the two below, and the head while final is not set
	final     bool       // the final response has begun: no more 1xx
	continued bool       // the client has been told to send its body, or will be by the read under way

	failed  error // see Outcome
	broken  error
	carried meter
}

// Forward implements [Forwarder].
func (p *proxy) Forward(ctx context.Context, e Exchange) Outcome {
	x := &exchange{Exchange: e, p: p, ctx: ctx}
	// A response may begin while the request body is still on its way.
	_ = http.NewResponseController(x.Writer).EnableFullDuplex() // HTTP/1 always can
	if len(x.Request.TransferEncoding) > 0 && x.Request.Trailer == nil {
		x.Request.Trailer = http.Header{} // where trailers that were not announced are put
	}
	if e.TLS || e.Upgrade {
		x.transported()
	} else {
		x.plain()
	}
	o := Outcome{Failed: x.failed, Broken: x.broken}
	o.Sent, o.Received = x.carried.read()
	return o
}

// transported carries x by net/http's transport.
func (x *exchange) transported() {
	x.ctx, x.cancel = context.WithCancelCause(context.WithValue(x.ctx, exchangeKey{}, x))
	defer x.cancel(nil)
	if out := x.outgoing(); out.Header.Get("Upgrade") != "" {
		x.upgrade(out)
	} else {
		// goproxy makes the round trip and copies the response.
		x.p.copier.ServeHTTP(x.response(), out)
	}
}

// response is the client's side of the response.
func (x *exchange) response() *responseWriter { return &responseWriter{ResponseWriter: x.Writer, x: x} }

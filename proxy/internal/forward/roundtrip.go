package forward

import (
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"

	"github.com/elazarl/goproxy"
)

// trace records the request before its first byte leaves, and passes on 1xx.
func (x *exchange) trace() *httptrace.ClientTrace {
	informational := 0
	return &httptrace.ClientTrace{
		GotConn: x.gotConn,
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if informational++; informational > maxInformational {
				return ErrTooMany1xx
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
	if err := x.Gate.Pass(info.Conn.RemoteAddr()); err != nil {
		_ = info.Conn.Close() // so that the write which follows fails
		x.cancel(err)
	}
}

// inform passes a 1xx response on. 100 goes to clients that wait for it; HTTP/1.0
// has none.
func (x *exchange) inform(code int, header http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.Gate.Survive(nil) // this runs in a goroutine of the transport
	if x.final || x.HTTP10 || code == http.StatusContinue && x.Request.Header.Get("Expect") == "" {
		return
	}
	if code == http.StatusContinue && x.continued {
		return
	}
	x.continued = x.continued || code == http.StatusContinue
	fromOrigin(header)
	x.Gate.Fields(header)
	h := x.Writer.Header()
	maps.Copy(h, header)
	x.Writer.WriteHeader(code)
	clear(h)
}

// continues invites a client that waits for it to send its body, which is about to
// be read. The client gets one 100, whether the origin's comes before, after or
// never, and from here alone: one that a server sends by itself, at the first read, could
// meet another 1xx on its way. False: the final response came first, so the client has
// been told nothing and sends nothing.
func (x *exchange) continues() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.continued:
		return true
	case x.Request.Header.Get("Expect") == "" || x.HTTP10:
	case x.final:
		return false
	default:
		x.Writer.WriteHeader(http.StatusContinue)
	}
	x.continued = true
	return true
}

// RoundTrip implements goproxy.RoundTripper.
func (x *exchange) RoundTrip(out *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	resp, err := x.roundTrip(out)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = ErrUnasked101
	}
	if err == nil {
		err = x.prepare(resp)
	}
	if err != nil {
		x.failed = err
		return nil, err
	}
	return resp, nil
}

// roundTrip sends the request through the pool.
func (x *exchange) roundTrip(out *http.Request) (*http.Response, error) {
	if x.ProxyLogin != "" {
		out.Header.Set("Proxy-Authorization", x.ProxyLogin) // here, since goproxy removes it
	}
	resp, err := x.p.transport.RoundTrip(out)
	x.mu.Lock()
	x.final = true
	x.mu.Unlock()
	return resp, err
}

// prepare makes the response fit for the client: hop-by-hop fields removed, no
// type guessed, its body watched. An error: its body is closed.
func (x *exchange) prepare(resp *http.Response) error {
	fromOrigin(resp.Header)
	if err := x.Gate.Incoming(resp); err != nil {
		_ = resp.Body.Close()
		return err
	}
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := resp.Header[name]; !ok {
			resp.Header[name] = nil // else net/http adds one
		}
	}
	disown(resp.Trailer)
	resp.Body = &watchedBody{ReadCloser: resp.Body, x: x, resp: resp}
	return nil
}

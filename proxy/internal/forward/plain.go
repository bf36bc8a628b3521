package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"egressd/proxy/internal/http1"
)

// headBufferBytes is the buffer for a request head, and then for the response.
// Implementation constant.
const headBufferBytes = 4 << 10

// trip is one request to a plain-HTTP origin over one connection, and what comes
// back.
type trip struct {
	x    *exchange
	out  *http.Request
	o    *origin
	held *[]byte // of p.heads

	up     *upload     // nil: there is no content
	stop   func() bool // ends the watch over the exchange's context
	tried  bool        // the request was to be sent
	unsent bool        // and not a byte of it has left
}

// plain carries an exchange with a plain-HTTP origin, without net/http's
// transport: its goroutines and channels cost more than the rest of the exchange.
func (x *exchange) plain() {
	out := x.Request.WithContext(x.ctx)
	x.dress(out)
	if x.ProxyLogin != "" {
		out.Header.Set("Proxy-Authorization", x.ProxyLogin)
	}
	t, resp, err := x.send(out)
	x.mu.Lock()
	x.final = true
	x.mu.Unlock()
	if err != nil {
		x.failed = x.why(err)
		return
	}
	whole := false
	defer func() { t.end(whole) }()
	_ = t.o.SetDeadline(time.Time{}) // fails with the connection, as the next read does
	content := resp.Body
	if x.failed = x.prepare(resp); x.failed != nil {
		return
	}
	rw := x.response()
	if watched, ok := resp.Body.(*watchedBody); ok && watched.ReadCloser == content {
		rw.more = t.o.in.Ready
	}
	whole = x.deliver(rw, resp) == nil
	if x.broken != nil {
		x.broken = x.why(x.broken)
	}
}

// why is what ended the exchange if something did, else err.
func (x *exchange) why(err error) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return err
}

// send sends out, and again over another connection if the origin closed the
// kept one meanwhile. The caller ends the trip.
func (x *exchange) send(out *http.Request) (*trip, *http.Response, error) {
	for fresh := false; ; fresh = true {
		o, err := x.connect(fresh)
		if err != nil {
			return nil, nil, err
		}
		t := &trip{x: x, out: out, o: o, held: x.p.heads.Get(headBufferBytes)}
		resp, err := t.try()
		if err == nil {
			return t, resp, nil
		}
		again := t.stale(err)
		t.end(false)
		if !again {
			return nil, nil, err
		}
	}
}

// connect reports a connection for x: a kept one, unless it must be fresh.
func (x *exchange) connect(fresh bool) (*origin, error) {
	r := route{x.Host, x.Absolute}
	if !fresh {
		if o := x.p.kept.take(r); o != nil {
			return o, nil
		}
	}
	c, err := x.dial(x.ctx)
	if err != nil {
		return nil, err
	}
	return newOrigin(c, r), nil
}

// try sends the request and reads up to the head of the final response.
func (t *trip) try() (resp *http.Response, err error) {
	ok := false
	defer func() {
		if !ok && err == nil { // a panic
			t.end(false)
		}
	}()
	t.x.carried.on(t.o.originConn)
	t.stop = context.AfterFunc(t.x.ctx, func() { _ = t.o.Close() })
	if err := t.x.Gate.Pass(t.o.RemoteAddr()); err != nil {
		return nil, err
	}
	err = t.sendHead()
	if err == nil {
		if t.out.ContentLength != 0 {
			t.up = t.x.begin(t.out, t.o.originConn)
		}
		resp, err = t.response()
	}
	if err != nil && t.up != nil {
		if why := t.up.failed.Load(); why != nil {
			err = *why // and so the connection was closed
		}
	}
	ok = true
	return resp, err
}

func (t *trip) sendHead() error {
	b, err := t.x.appendHead((*t.held)[:0], t.out)
	if err != nil {
		return err
	}
	if t.out.ContentLength == 0 {
		if err := t.o.SetDeadline(time.Now().Add(headTimeout)); err != nil {
			return err
		}
	}
	t.o.in.Begin(*t.held)
	n, err := t.o.Write(b)
	t.tried, t.unsent = true, n == 0
	return err
}

// awaitHead bounds the wait for the response to what has been sent.
func (x *exchange) awaitHead(c net.Conn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.final {
		_ = c.SetReadDeadline(time.Now().Add(headTimeout)) // fails with the connection, as the read does
	}
}

// response reads heads up to the final one.
func (t *trip) response() (*http.Response, error) {
	for n := 0; ; n++ {
		r, err := t.o.in.Next(t.out.Method)
		switch {
		case err != nil:
			return nil, malformed(err)
		case r.Status == http.StatusSwitchingProtocols:
			return nil, ErrUnasked101
		case r.Status >= http.StatusOK:
			t.up.invite(false)
			return t.asResponse(r), nil
		case n == maxInformational:
			return nil, ErrTooMany1xx
		}
		t.x.inform(r.Status, http.Header(r.Header))
		if r.Status == http.StatusContinue {
			t.up.invite(true)
		}
	}
}

// asResponse is r as gates know it.
func (t *trip) asResponse(r *http1.Response) *http.Response {
	resp := &http.Response{
		StatusCode: r.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: r.Minor,
		Header: http.Header(r.Header), Trailer: http.Header(r.Trailer),
		ContentLength: r.Length, Close: r.Last, Body: http.NoBody, Request: t.out,
	}
	if r.Length != 0 {
		resp.Body = content{&t.o.in}
	}
	return resp
}

// content is the content of a response.
type content struct{ in *http1.Responses }

// Read reads content without its framing.
func (c content) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	return n, malformed(err)
}

// Close does nothing: the trip's end closes the connection.
func (c content) Close() error { return nil }

// malformed is err in words for a person, if it is about what the origin sent.
// They hold no bytes of the origin.
func malformed(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		return err
	}
	var bad *http1.Error
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: %s", ErrMalformed, bad.Detail)
	}
	return err
}

// stale reports whether the request may be sent again: the origin closed a kept
// connection before it answered, and sending it twice does no harm, or it was
// not sent.
func (t *trip) stale(err error) bool {
	var timed interface{ Timeout() bool }
	if !t.tried || !t.o.used || t.o.in.Begun() || t.out.ContentLength != 0 || t.x.ctx.Err() != nil ||
		errors.As(err, &timed) && timed.Timeout() {
		return false
	}
	switch t.out.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, key := t.out.Header["Idempotency-Key"]
	_, xkey := t.out.Header["X-Idempotency-Key"]
	return key || xkey || t.unsent
}

// end gives up the connection: to the next exchange if this one is whole. It may
// be called more than once.
func (t *trip) end(whole bool) {
	if t.held == nil {
		return
	}
	watching := t.stop == nil || t.stop() // else it is being closed
	if sent := whole && t.up.done(); t.o.in.End() && sent && watching {
		t.x.p.kept.put(t.o)
	} else {
		_ = t.o.Close()
	}
	t.x.p.heads.Put(t.held, headBufferBytes)
	t.held = nil
}

// deliver sends resp to the client. An error is the client's own; the origin's is
// in x.broken.
func (x *exchange) deliver(rw *responseWriter, resp *http.Response) error {
	h := rw.Header()
	for name, values := range resp.Header {
		h[name] = values
	}
	announced := len(resp.Trailer)
	if announced > 0 {
		h.Set("Trailer", strings.Join(sortedNames(resp.Trailer), ", "))
	}
	rw.WriteHeader(resp.StatusCode)
	if resp.ContentLength == 0 {
		return nil
	}
	if _, err := rw.ReadFrom(resp.Body); err != nil || len(resp.Trailer) == 0 {
		return err
	}
	rw.Flush() // a short response would be sent with its length, and without trailers
	prefix := ""
	if len(resp.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		h[prefix+name] = values
	}
	return nil
}

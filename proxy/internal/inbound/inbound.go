// Package inbound serves the HTTP/1 requests of one client connection, one after
// the other, in the goroutine that calls it.
//
//	c := inbound.Conn{Wire: http1.NewConn(conn), Handle: handle, Buffers: &buffers}
//	c.Serve(ctx)
//
// Requests are read by [http1.Conn] and nothing else. The handler gets each one
// as an [http.Request] made of what was read, so that it can be forwarded by any
// means, and answers by a [Writer]. There is no second parser that could read a
// request in another way.
package inbound

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"egressd/proxy/internal/http1"
	"egressd/proxy/internal/pool"
)

// BufferBytes is the size of the buffers that responses are gathered in.
const BufferBytes = 4 << 10

// skippedBytes is how much of a body that the handler left is read for the sake
// of the requests behind it. Implementation constant.
const skippedBytes = 256 << 10

// Conn serves one connection.
type Conn struct {
	Wire *http1.Conn

	// Handle answers one request. What could not be read comes with its Err in
	// facts; then r has a method at most. w and r are its own until it returns.
	Handle func(w *Writer, r *http.Request, facts http1.Request)

	First time.Duration // to wait for the first request
	Idle  time.Duration // to wait for another one

	Buffers *pool.Buffers // of BufferBytes
}

// Serve serves requests until the connection ends, and closes it. The context of
// the requests ends with ctx, and when the client has gone.
func (c *Conn) Serve(ctx context.Context) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	blank := new(http.Request).WithContext(ctx)
	for wait := c.First; ; wait = c.Idle {
		facts, err := c.Wire.Next(wait)
		if err != nil {
			break
		}
		x := c.exchange(blank, facts)
		x.serve(c, facts, gone)
		if x.w.taken {
			return // its new owner closes it
		}
		if x.w.aborted {
			c.Wire.Abort()
			_ = x.body.Close()
			return
		}
		if x.w.last || !x.body.skip() {
			c.Wire.Finish()
			_ = x.body.Close()
			return
		}
	}
	c.Wire.Finish()
}

// exchange is one request and its response.
type exchange struct {
	r    http.Request
	w    Writer
	body body
	url  url.URL
}

// exchange makes what the handler gets out of what was read.
func (c *Conn) exchange(blank *http.Request, facts http1.Request) *exchange {
	x := &exchange{r: *blank} // with its context
	r := &x.r
	r.Method, r.Host, r.Header = facts.Method, facts.Host, http.Header(facts.Header)
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, facts.Minor
	if facts.Minor == 0 {
		r.Proto = "HTTP/1.0"
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	x.url.Path = facts.Path
	r.URL, r.RequestURI = &x.url, facts.Target
	r.ContentLength, r.Body = facts.Length, http.NoBody
	x.body.wire = c.Wire
	if facts.Length != 0 {
		r.Body = &x.body
	}
	if facts.Length < 0 {
		r.TransferEncoding, r.Trailer = []string{"chunked"}, http.Header(facts.Trailer)
	}
	x.w.init(c, facts)
	return x
}

// serve has the handler answer. A panic of the handler's goes on, with the
// connection closed.
func (x *exchange) serve(c *Conn, facts http1.Request, gone func()) {
	ok := false
	defer func() {
		if !ok {
			c.Wire.Abort()
			x.w.release()
		}
	}()
	c.Wire.Watch(gone)
	defer x.w.unwatch()
	c.Handle(&x.w, &x.r, facts)
	x.w.finish()
	ok = true
}

// body is the content of one request.
type body struct {
	wire *http1.Conn

	mu     sync.Mutex // held by who reads, so that nothing is read after Close
	closed bool
}

// Read reads content without its framing.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.wire.ReadBody(p)
}

// Close ends reading: what another goroutine reads later is not of this request.
// It waits for the end of a read under way.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// skip closes the body and reads what is left of it. False: it is too long, or
// cannot be read.
func (b *body) skip() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.wire.BodyDone() {
		return true
	}
	_, err := io.CopyN(io.Discard, left{b.wire}, skippedBytes)
	return err == io.EOF || b.wire.BodyDone() //nolint:errorlint // io.Reader: EOF comes bare
}

// left is what nobody has read of a body.
type left struct{ wire *http1.Conn }

// Read reads content.
func (l left) Read(p []byte) (int, error) { return l.wire.ReadBody(p) }

package forward

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Implementation constants.
const (
	copyBufferBytes = 32 << 10
	headPatience    = 20 * time.Millisecond // for a body of known length to follow its head
)

// countedBody counts a request body as the origin gets it.
type countedBody struct {
	io.ReadCloser
	x *exchange
}

// Read reads from the client.
func (b *countedBody) Read(p []byte) (n int, err error) {
	defer b.x.Gate.Survive(nil) // this runs in a goroutine of the transport
	b.x.continues()
	n, err = b.ReadCloser.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrShortUpload
	}
	if cerr := b.x.Gate.Count(n); cerr != nil {
		return 0, cerr
	}
	return n, err
}

// watchedBody counts a response body and remembers that it broke off: goproxy
// would end the response as if it were whole. With the end come the trailers.
type watchedBody struct {
	io.ReadCloser
	x    *exchange
	resp *http.Response
}

// Read reads from the origin.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if cerr := b.x.Gate.Count(n); cerr != nil {
		n, err = 0, cerr
	}
	switch {
	case err == io.EOF: //nolint:errorlint // io.Reader: EOF comes bare
		disown(b.resp.Trailer)
		b.x.Gate.Fields(b.resp.Trailer)
	case err != nil:
		b.x.broken = err
	}
	return n, err
}

// responseWriter is the client's side of a response as goproxy writes it. It
// passes on what the origin sends when it sends it, and swallows goproxy's own
// error page.
type responseWriter struct {
	http.ResponseWriter
	x      *exchange
	unsent int64 // bytes of Content-Length to come; -1: not stated
	waste  http.Header
	more   func() bool // the next read need not wait; nil: that is not known

	mu    sync.Mutex // guards what follows and, until then, the flush of the head
	first bool       // the first bytes of the body are there
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Header reports the fields of the response.
func (w *responseWriter) Header() http.Header {
	if w.x.failed != nil {
		if w.waste == nil {
			w.waste = http.Header{}
		}
		return w.waste
	}
	return w.ResponseWriter.Header()
}

// WriteHeader sends the head.
func (w *responseWriter) WriteHeader(code int) {
	if w.x.failed != nil {
		return
	}
	w.unsent = -1
	if n, ok := contentLength(w.ResponseWriter.Header()); ok {
		w.unsent = n
	}
	w.ResponseWriter.WriteHeader(code)
	if w.unsent < 0 && code != http.StatusNoContent && code != http.StatusNotModified && w.x.Request.Method != http.MethodHead && !w.ready() {
		w.Flush() // a stream: its first byte may be long in coming
	}
}

// Write sends part of the body.
func (w *responseWriter) Write(p []byte) (int, error) {
	if w.x.failed != nil {
		return len(p), nil
	}
	n, err := w.ResponseWriter.Write(p)
	if w.unsent >= 0 {
		w.unsent -= int64(n)
	}
	return n, err
}

// Flush sends what is buffered.
func (w *responseWriter) Flush() {
	if w.x.failed == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // fails with the connection, as the next write does
	}
}

// ready reports whether the next read of the body is known not to wait.
func (w *responseWriter) ready() bool { return w.more != nil && w.more() }

// flushHead sends the head of a response of known length whose body is slow.
func (w *responseWriter) flushHead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.first {
		w.Flush()
	}
}

// firstRead reads the first bytes of the body, which mostly came with the head
// and can leave with it.
func (w *responseWriter) firstRead(src io.Reader, p []byte) (int, error) {
	if w.unsent <= 0 || w.ready() {
		return src.Read(p)
	}
	t := time.AfterFunc(headPatience, w.flushHead)
	n, err := src.Read(p)
	t.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = true
	return n, err
}

// ReadFrom copies the body. It flushes whenever the origin pauses, so that a
// stream of any type arrives as it is sent.
func (w *responseWriter) ReadFrom(src io.Reader) (int64, error) {
	held, used := w.x.p.Buffers.Get(copyBufferBytes), copyBufferBytes
	defer func() { w.x.p.Buffers.Put(held, used) }()
	buf := *held
	var total int64
	read := w.firstRead
	if w.more != nil {
		used = 0 // http1.Responses writes what it reports, and nothing else
	}
	for {
		n, err := read(src, buf)
		read = readNext
		used = max(used, n)
		if n > 0 {
			m, werr := w.Write(buf[:n])
			total += int64(m)
			if werr != nil {
				return total, werr
			}
			if n < len(buf) && w.unsent != 0 && err == nil && !w.ready() {
				w.Flush()
			}
		}
		if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

func readNext(src io.Reader, p []byte) (int, error) { return src.Read(p) }

// copyOne copies one direction of an upgraded connection.
func copyOne(dst io.Writer, src io.Reader, x *exchange) (int64, error) {
	held := x.p.Buffers.Get(copyBufferBytes)
	defer x.p.Buffers.Put(held, copyBufferBytes)
	buf := *held
	var total int64
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if berr := x.Gate.Count(n); berr != nil {
				return total, berr
			}
			m, werr := dst.Write(buf[:n])
			total += int64(m)
			if werr != nil {
				return total, werr
			}
		}
		if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// closeWriteOf passes the end of one direction on: as a half-close if c has
// halves, else by closing it.
func closeWriteOf(c io.Closer) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// contentLength reports the Content-Length of a response, if it states one.
func contentLength(h http.Header) (int64, bool) {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	return n, err == nil && n >= 0
}

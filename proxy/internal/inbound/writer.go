package inbound

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"egressd/proxy/internal/http1"
	"egressd/proxy/internal/pool"
)

var (
	errOver   = errors.New("the response is over")
	errNoBody = errors.New("a response with this status, or to this method, has no content")
	errLonger = errors.New("the response is longer than its Content-Length")
)

// Writer writes the response to one request. It is an [http.ResponseWriter], and
// adds nothing to what it is given but the framing, a Date if the header has no
// such key, and whether the connection stays open. Reading and writing go on side
// by side. One goroutine uses it at a time.
type Writer struct {
	out
	fate
	header http.Header
	phrase string // of the status line; "": the usual one

	isHead    bool  // the request is HEAD
	minor     int   // of the request's version
	status    int   // of the final response; 0: not known yet
	length    int64 // of the content, as stated; -1: not stated
	written   int64 // of the content
	headSent  bool  // it is at least in the buffer
	noBody    bool  // the response has no content, whatever its header says
	chunked   bool
	announced []string // trailers, by canonical name
}

// fate is what becomes of the connection.
type fate struct {
	last  bool // it ends with this response
	asked bool // the client asked for keep-alive, with HTTP/1.0
	// uninvited: the client waits for 100 before it sends its body.
	uninvited bool
	taken     bool // by Hijack
	aborted   bool
	watching  bool // Watch has begun, and not ended
}

// out gathers bytes in a buffer that it holds only meanwhile.
type out struct {
	wire *http1.Conn
	pool *pool.Buffers
	buf  *[]byte // nil: nothing is held
	n    int     // (*buf)[:n] is to be written
	high int     // the most of buf that was ever used
	err  error   // of the last write, sticky
}

func (w *Writer) init(c *Conn, facts http1.Request) {
	w.wire, w.pool = c.Wire, c.Buffers
	w.isHead, w.minor, w.length = facts.Method == http.MethodHead, facts.Minor, -1
	w.asked = facts.Minor == 0 && facts.KeepAlive && !facts.Close
	w.last = facts.Err != nil || facts.Close || facts.Minor == 0 && !w.asked
	w.uninvited = facts.Expect && facts.Length != 0
	w.watching = true
}

// unwatch ends the watch over the client, once.
func (w *Writer) unwatch() {
	if w.watching {
		w.watching = false
		w.wire.Unwatch()
	}
}

// put appends to the buffer, and writes it when it is full.
func (o *out) put(p string) {
	for len(p) > 0 && o.err == nil {
		n := copy(o.room(), p)
		o.n += n
		p = p[n:]
	}
}

// putBytes is put for content, which is not copied if it is long.
func (o *out) putBytes(p []byte) {
	if room := o.room(); len(p) <= len(room) {
		o.n += copy(room, p)
		return
	}
	o.flush()
	if o.err == nil {
		if len(p) < BufferBytes {
			o.n = copy(o.room(), p)
			return
		}
		_, o.err = o.wire.Write(p)
	}
}

// room is the free part of the buffer, which is not empty unless a write failed.
func (o *out) room() []byte {
	if o.buf == nil {
		o.buf, o.n, o.high = o.pool.Get(BufferBytes), 0, 0
	}
	if o.n == len(*o.buf) {
		o.flush()
	}
	return (*o.buf)[o.n:]
}

// flush writes the buffer.
func (o *out) flush() {
	if o.n == 0 {
		return
	}
	o.high = max(o.high, o.n)
	n := o.n
	o.n = 0
	if o.err == nil {
		_, o.err = o.wire.Write((*o.buf)[:n])
	}
}

// release gives the buffer back.
func (o *out) release() {
	if o.buf != nil {
		o.pool.Put(o.buf, max(o.high, o.n))
		o.buf, o.n = nil, 0
	}
	if o.err == nil {
		o.err = errOver
	}
}

// Header implements http.ResponseWriter.
func (w *Writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header, 8)
	}
	return w.header
}

// SetPhrase sets the reason phrase of the final response. It must be printable
// ASCII. Call it before WriteHeader.
func (w *Writer) SetPhrase(phrase string) { w.phrase = phrase }

// Abort ends the connection at once: the client must see that the response is not
// whole.
func (w *Writer) Abort() { w.aborted = true }

// WriteHeader implements http.ResponseWriter: 1xx is sent at once, and the head of
// the final response with its first content.
func (w *Writer) WriteHeader(status int) {
	switch {
	case w.taken || w.status != 0:
		return
	case status < 200 && status != http.StatusSwitchingProtocols:
		w.uninvited = w.uninvited && status != http.StatusContinue
		w.statusLine(status)
		w.fields()
		w.put("\r\n")
		w.flush()
		return
	}
	w.status = status
	w.noBody = w.isHead || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	if v := w.Header()["Content-Length"]; len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if w.taken {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.noBody {
		if w.isHead {
			return len(p), nil
		}
		return 0, errNoBody
	}
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		w.written -= int64(len(p))
		w.last = true
		return 0, errLonger
	}
	if len(p) == 0 {
		return 0, w.err
	}
	w.sendHead(false)
	if w.chunked {
		w.put(strconv.FormatInt(int64(len(p)), 16))
		w.put("\r\n")
	}
	w.putBytes(p)
	if w.chunked {
		w.put("\r\n")
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// FlushError serves http.ResponseController: it sends what there is.
func (w *Writer) FlushError() error {
	if w.taken {
		return http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.sendHead(false)
	w.flush()
	return w.err
}

// Flush implements http.Flusher.
func (w *Writer) Flush() { _ = w.FlushError() }

// EnableFullDuplex serves http.ResponseController: it is always so.
func (w *Writer) EnableFullDuplex() error { return nil }

// Hijack implements http.Hijacker. The connection reads what follows the request,
// without a deadline.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.taken {
		return nil, nil, http.ErrHijacked
	}
	w.flush()
	w.unwatch()
	w.taken = true
	w.wire.Raw()
	return w.wire, bufio.NewReadWriter(bufio.NewReaderSize(w.wire, 0), bufio.NewWriterSize(io.Discard, 0)), nil
}

// finish sends what is left of the response.
func (w *Writer) finish() {
	defer w.release()
	switch {
	case w.taken:
		return
	case w.aborted:
		w.flush() // what there was until then
		return
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.sendHead(true)
	if w.chunked {
		w.put("0\r\n")
		w.trailers()
		w.put("\r\n")
	}
	w.flush()
	switch {
	case w.err != nil, !w.noBody && w.length >= 0 && w.written != w.length:
		w.aborted = true // the client must see that it is not whole
	}
}

// sendHead sends the head of the final response, once. over: no content follows.
func (w *Writer) sendHead(over bool) {
	if w.headSent {
		return
	}
	w.headSent = true
	h := w.Header()
	for _, v := range h["Connection"] {
		w.last = w.last || http1.Lists(v, "close")
	}
	stated := w.length >= 0
	switch {
	case w.noBody || stated:
	case over:
		w.length = 0
	case w.minor == 1:
		w.chunked = true
	default:
		w.last = true // the end of the content is that of the connection
	}
	// A client that was never told to send its body may send it or not: nobody could
	// tell it from the next request.
	w.last = w.last || w.uninvited || w.wire.Draining()
	w.statusLine(w.status)
	w.fields()
	if !w.noBody && !stated && over {
		w.put("Content-Length: 0\r\n")
	}
	if w.chunked {
		w.put("Transfer-Encoding: chunked\r\n")
		w.announced = announced(h)
	}
	if _, ok := h["Date"]; !ok {
		w.field("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	switch {
	case w.last:
		w.put("Connection: close\r\n")
	case w.asked:
		w.put("Connection: keep-alive\r\n")
	}
	w.put("\r\n")
}

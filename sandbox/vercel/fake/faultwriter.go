package fake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// faultWriter is the ResponseWriter of every handler. It records the status and
// applies the fault of the request.
type faultWriter struct {
	http.ResponseWriter
	fault *Fault

	ctx    context.Context // of the request
	status int
	lines  int
	bytes  int
	lost   bool // the answer is lost
}

// endOfAnswer is the panic value that leaves a handler whose answer has ended
// early; serveAPI recovers it.
type endOfAnswer struct{}

// Unwrap lets an http.ResponseController find the connection.
func (w *faultWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// before applies what happens before a request is handled. done means that it has
// been answered.
func (w *faultWriter) before(r *http.Request) (done bool) {
	f := w.fault
	if f == nil {
		return false
	}
	w.ctx = r.Context()
	if !w.wait(f.Delay) {
		return true
	}
	switch {
	case f.Reset == "before":
		w.reset()
	case f.Reset == "after":
		w.lost = true
		return false
	case f.Status == 0:
		return false
	}
	// A client that is still sending would meet a reset instead of the answer.
	_, _ = io.CopyN(io.Discard, r.Body, maxArchiveBytes)
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body == "" {
		w.fail(f.apiError())
		return true
	}
	w.Header().Set("Content-Type", cmp.Or(f.ContentType, "text/html; charset=utf-8"))
	w.WriteHeader(f.Status)
	_, err := io.WriteString(w, f.Body)
	_ = reply.IgnoreWrite(err)
	return true
}

// wait waits for d; false: the client has gone meanwhile.
func (w *faultWriter) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// after ends an answer that is lost.
func (w *faultWriter) after() {
	if w.lost {
		w.reset()
	}
}

// reset resets the connection and leaves the handler.
func (w *faultWriter) reset() {
	c, _, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // with a RST; else it just closes
		}
		_ = c.Close()
	}
	panic(http.ErrAbortHandler)
}

// fail answers with an error.
func (w *faultWriter) fail(err error) {
	e := asAPIError(err)
	if w.status != 0 {
		return // it has begun
	}
	body := map[string]any{"error": map[string]string{"code": e.Code, "message": e.Message}}
	_ = reply.JSON(w, e.Status, body)
}

func (w *faultWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	if !w.lost {
		w.ResponseWriter.WriteHeader(status)
	}
}

// FlushError flushes what was written.
func (w *faultWriter) FlushError() error {
	if w.lost {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *faultWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	switch {
	case w.lost:
		return len(p), nil
	case w.fault != nil && !w.wait(w.fault.Slow):
		return 0, w.ctx.Err()
	case w.fault == nil || w.fault.Then == "":
		return w.ResponseWriter.Write(p)
	}
	n, over := w.within(p)
	m, err := w.ResponseWriter.Write(p[:n])
	if !over {
		return m, err
	}
	_ = w.FlushError()
	switch w.fault.Then {
	case "reset":
		w.reset()
	case "error":
		e := w.fault.apiError()
		_ = json.NewEncoder(w.ResponseWriter).Encode(errorLine(e.Code, e.Message))
	}
	panic(endOfAnswer{})
}

// within reports how much of p may still be written, and whether that is the
// last of it.
func (w *faultWriter) within(p []byte) (n int, over bool) {
	f := w.fault
	if f.Bytes > 0 {
		n = min(len(p), f.Bytes-w.bytes)
		w.bytes += n
		return n, w.bytes >= f.Bytes
	}
	for w.lines < f.Lines {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			return len(p), false
		}
		n += i + 1
		w.lines++
	}
	return n, true
}

package fake

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of the record.
const (
	maxRecorded      = 10_000
	maxRecordedBody  = 256 << 10 // of one body; what is more is counted
	maxRecordedBytes = 64 << 20  // of all bodies
)

// Request is a request that the double got, as it was sent.
type Request struct {
	Time      time.Time   `json:"time"`
	Method    string      `json:"method"`
	Path      string      `json:"path"`  // as sent, without the query
	Query     string      `json:"query"` // as sent
	Host      string      `json:"host"`
	Header    http.Header `json:"header"`    // credentials included
	Body      []byte      `json:"body"`      // the first 256 KiB that were read
	BodyBytes int64       `json:"bodyBytes"` // that were read
	Status    int         `json:"status"`    // of the answer; 0: there is none yet, or none was sent
}

// recorder keeps requests. The oldest are dropped when there are too many.
type recorder struct {
	mu    sync.Mutex
	all   []*recorded
	bytes int
}

// recorded is a request whose body may still be arriving.
type recorded struct {
	rec  *recorder
	req  Request
	body bytes.Buffer
	io.ReadCloser
}

// begin records r and what is read of its body.
func (rec *recorder) begin(r *http.Request) *recorded {
	e := &recorded{rec: rec, ReadCloser: r.Body, req: Request{
		Time: time.Now(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Header: r.Header.Clone(),
	}}
	if path, _, _ := strings.Cut(r.RequestURI, "?"); path != "" {
		e.req.Path = path // r.URL's has lost its /api
	}
	r.Body = e
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.all = append(rec.all, e)
	for len(rec.all) > maxRecorded || rec.bytes > maxRecordedBytes {
		rec.bytes -= rec.all[0].body.Len()
		rec.all = slices.Delete(rec.all, 0, 1)
	}
	return e
}

// Read records what a handler reads of the body.
func (e *recorded) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.rec.mu.Lock()
	defer e.rec.mu.Unlock()
	e.req.BodyBytes += int64(n)
	if room := maxRecordedBody - e.body.Len(); room > 0 {
		kept, _ := e.body.Write(p[:min(n, room)])
		e.rec.bytes += kept
	}
	return n, err
}

func (rec *recorder) end(e *recorded, status int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	e.req.Status = status
}

// Requests lists what the double got, oldest first: the API's requests, not
// those to /_double/ and to routes.
func (s *Server) Requests() []Request {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	out := make([]Request, 0, len(s.record.all))
	for _, e := range s.record.all {
		r := e.req
		r.Body = bytes.Clone(e.body.Bytes())
		out = append(out, r)
	}
	return out
}

// ForgetRequests clears the record.
func (s *Server) ForgetRequests() {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	s.record.all, s.record.bytes = nil, 0
}

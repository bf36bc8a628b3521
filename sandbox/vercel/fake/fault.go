package fake

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// Fault is a deliberate failure. Its parts take effect in the order of its
// fields.
type Fault struct {
	Method string `json:"method,omitempty"` // "" every one
	Path   string `json:"path,omitempty"`   // a path.Match pattern for the path behind /api; "" every one
	Skip   int    `json:"skip,omitempty"`   // how many such requests pass first
	Times  int    `json:"times,omitempty"`  // how often it happens; zero: once, negative: always

	Delay time.Duration `json:"delay,omitempty"` // nanoseconds before anything else
	Reset string        `json:"reset,omitempty"` // "before": the connection is reset and nothing done; "after": all is done and the answer is lost

	// With a Status the answer is this, and nothing is done.
	Status      int    `json:"status,omitempty"`
	Code        string `json:"code,omitempty"`    // "": what the API says with that status
	Message     string `json:"message,omitempty"` // "": the status in words
	RetryAfter  string `json:"retryAfter,omitempty"`
	Body        string `json:"body,omitempty"`        // in the place of the error envelope
	ContentType string `json:"contentType,omitempty"` // of Body; "": text/html

	Slow time.Duration `json:"slow,omitempty"` // nanoseconds before each write of the answer

	// Then is what happens to an answer after Lines lines or Bytes bytes of it:
	// "reset" of the connection, "end" as if it were whole, or "error": a line
	// of stream "error" with Code and Message, then the end. "": nothing.
	Then  string `json:"then,omitempty"`
	Lines int    `json:"lines,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
}

// Inject adds f. If several faults match a request, the first takes effect.
func (s *Server) Inject(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if len(s.faults.list) >= maxFaults {
		return fmt.Errorf("more than %d faults", maxFaults)
	}
	s.faults.list = append(s.faults.list, &f)
	return nil
}

// ClearFaults removes the faults that have not happened yet.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
}

// Faults lists what has not happened yet.
func (s *Server) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	out := []Fault{}
	for _, f := range s.faults.list {
		out = append(out, *f)
	}
	return out
}

const maxFaults = 1000

type faultList struct {
	mu   sync.Mutex
	list []*Fault
}

func (f *Fault) check() error {
	if _, err := path.Match(f.Path, "/"); err != nil {
		return fmt.Errorf("fault: path %q: %w", f.Path, err)
	}
	switch {
	case !slices.Contains([]string{"", "before", "after"}, f.Reset):
		return fmt.Errorf("fault: reset %q: before or after", f.Reset)
	case !slices.Contains([]string{"", "reset", "end", "error"}, f.Then):
		return fmt.Errorf("fault: then %q: reset, end or error", f.Then)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("fault: status %d", f.Status)
	case f.Delay < 0 || f.Slow < 0 || f.Lines < 0 || f.Bytes < 0 || f.Skip < 0:
		return fmt.Errorf("fault: a negative number")
	case f.Delay == 0 && f.Slow == 0 && f.Reset == "" && f.Status == 0 && f.Then == "":
		return fmt.Errorf("fault: says nothing: give a status, a delay, a reset, or what happens then")
	}
	return nil
}

// take reports what is to happen to r; nil: nothing.
func (l *faultList) take(r *http.Request) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.list {
		matched, _ := path.Match(f.Path, r.URL.Path) // checked when it was added
		if f.Method != "" && f.Method != r.Method || f.Path != "" && !matched {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		taken := *f
		switch f.Times {
		case 0, 1:
			l.list = slices.Delete(l.list, i, i+1)
		default:
			if f.Times > 0 {
				f.Times--
			}
		}
		return &taken
	}
	return nil
}

// defaultCodes are what the API says with a status, VERCEL.md section 3.
var defaultCodes = map[int]string{
	400: "bad_request", 401: "forbidden", 402: "payment_required", 403: "forbidden", 404: "not_found", 409: "conflict",
	410: "sandbox_stopped", 422: "sandbox_stopping", 429: "rate_limited",
}

func (f *Fault) apiError() *reply.Error {
	code := cmp.Or(f.Code, defaultCodes[f.Status], "internal_server_error")
	return reply.NewError(f.Status, code, cmp.Or(f.Message, http.StatusText(f.Status)))
}

// ParseFault parses a fault from a command line: a method or "*", a path pattern,
// then words such as status=429, code=, retry-after=1, body=, delay=2s,
// slow=10ms, reset=after, lines=2, bytes=100, then=error, skip=1, times=-1.
func ParseFault(text string) (Fault, error) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return Fault{}, fmt.Errorf("fault %q: want METHOD PATH WORD=VALUE and so on", text)
	}
	f := Fault{Method: words[0], Path: words[1]}
	if f.Method == "*" {
		f.Method = ""
	}
	for _, w := range words[2:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return f, fmt.Errorf("fault %q: %q is no WORD=VALUE", text, w)
		}
		if err := f.set(key, value); err != nil {
			return f, fmt.Errorf("fault %q: %s: %w", text, key, err)
		}
	}
	return f, f.check()
}

func (f *Fault) set(key, value string) (err error) {
	switch key {
	case "skip":
		f.Skip, err = strconv.Atoi(value)
	case "times":
		f.Times, err = strconv.Atoi(value)
	case "delay":
		f.Delay, err = time.ParseDuration(value)
	case "slow":
		f.Slow, err = time.ParseDuration(value)
	case "reset":
		f.Reset = value
	case "status":
		f.Status, err = strconv.Atoi(value)
	case "code":
		f.Code = value
	case "message":
		f.Message = value
	case "retry-after":
		f.RetryAfter = value
	case "body":
		f.Body = value
	case "then":
		f.Then = value
	case "lines":
		f.Lines, err = strconv.Atoi(value)
	case "bytes":
		f.Bytes, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("no such word")
	}
	return err
}

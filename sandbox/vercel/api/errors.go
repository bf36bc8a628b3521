package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Codes of errors that callers distinguish. The first six are the service's own.
const (
	CodeNotFound           = "not_found"
	CodeSandboxStopped     = "sandbox_stopped"
	CodeSandboxStopping    = "sandbox_stopping"
	CodeSnapshotting       = "sandbox_snapshotting"
	CodeExecutableNotFound = "executable_not_found"
	CodeFileError          = "file_error"
	CodeStreamEnded        = "stream_ended_early" // the stream of a command broke off
)

// Error is an answer of the service other than a success, or an invalid one. It
// is fs.ErrNotExist for status 404.
type Error struct {
	Op        string // "create sandbox"
	Status    int    // of HTTP; 0: an error inside a stream
	Code      string // "sandbox_stopped"; "" when the answer has none
	Message   string
	RequestID string // x-vercel-id
	SessionID string
	Hint      string // what to do; "": nothing is known
	Raw       string // the first bytes of the answer

	RetryAfter time.Duration // of Retry-After, else until the rate limit's window ends; 0: none
	window     bool          // RetryAfter is that of the window
}

// passing says that the failure may be over soon.
func (e *Error) passing() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500
}

// open says that the answer leaves open whether the request was carried out.
func (e *Error) open() bool { return e.Status >= 500 || e.Status == http.StatusRequestTimeout }

// Later reports how long the service asked to wait before the request of err is
// made again; 0: it did not ask.
func Later(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op + ":")
	if e.Status != 0 {
		fmt.Fprintf(&b, " status %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(" " + e.Code)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Raw != "":
		b.WriteString(": " + clip(e.Raw, 200))
	case e.Status != 0:
		b.WriteString(": " + http.StatusText(e.Status))
	}
	if e.RequestID != "" {
		b.WriteString(" (x-vercel-id " + e.RequestID + ")")
	}
	if e.Hint != "" {
		b.WriteString("\n  " + e.Hint)
	}
	return b.String()
}

// Is makes a 404 fs.ErrNotExist, and 401 and 403 fs.ErrPermission.
func (e *Error) Is(target error) bool {
	switch target { //nolint:errorlint // Is compares
	case fs.ErrNotExist:
		return e.Status == http.StatusNotFound
	case fs.ErrPermission:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	}
	return false
}

// UnknownOutcomeError reports a request that was sent and may or may not have
// been carried out.
type UnknownOutcomeError struct {
	Op  string
	Err error
}

// Error implements error.
func (e *UnknownOutcomeError) Error() string {
	return e.Op + ": it is not known whether it was carried out: " + e.Err.Error()
}

// Unwrap is what broke.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// ErrInvalid is in every error about a request that was not sent because the
// service would not take it.
var ErrInvalid = errors.New("the service would not take it")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrInvalid)
}

// IsGone says that the session has ended or is about to, so that nothing more
// can be asked of it: any 410, and the 422 of a session in transition.
func IsGone(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusGone || e.Code == CodeSandboxStopped ||
		e.Status == http.StatusUnprocessableEntity && (e.Code == CodeSandboxStopping || e.Code == CodeSnapshotting)
}

// rawMax bounds Error.Raw, messageMax Error.Message, in bytes.
const (
	rawMax     = 1 << 10
	messageMax = 4 << 10
)

// errorOf reads an answer whose status is not 2xx. text is its body.
func (c *Client) errorOf(op, session string, resp *http.Response, text []byte) *Error {
	e := &Error{
		Op: op, Status: resp.StatusCode, SessionID: session,
		RequestID: clip(c.clean(resp.Header.Get("X-Vercel-Id")), 200), Raw: clip(c.clean(string(text)), rawMax),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), c.now()),
	}
	if e.Status == http.StatusTooManyRequests && e.RetryAfter == 0 {
		e.RetryAfter = c.window(resp.Header.Get("X-Ratelimit-Reset"))
		e.window = e.RetryAfter > 0
	}
	var envelope struct {
		Error struct {
			Code    any `json:"code"`
			Message any `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &envelope) == nil {
		e.Code = clip(c.clean(plain(envelope.Error.Code)), 100)
		e.Message = clip(c.clean(plain(envelope.Error.Message)), messageMax)
	}
	if c.From != "" && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && (e.Code == "" || e.Code == "forbidden")) {
		e.Hint = "the service does not accept the token of " + c.From + " for project " + c.project()
		if c.team != "" {
			e.Hint += " of team " + c.team
		}
	}
	if resp.StatusCode/100 == 3 {
		e.Message = "the service redirects elsewhere, which is not followed"
	}
	return e
}

func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// clip is at most n bytes of s in one line of printable text.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// window is the time until the end of a rate limit's window, which the service
// gives in seconds since 1970; 0: not known.
func (c *Client) window(reset string) time.Duration {
	at, err := strconv.ParseInt(reset, 10, 64)
	if err != nil || at <= 0 || at > 1<<40 {
		return 0
	}
	return max(0, time.Unix(at, 0).Sub(c.serviceTime(c.now())))
}

// retryAfter reads seconds or a date; 0 is none.
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

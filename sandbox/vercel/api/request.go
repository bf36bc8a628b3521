package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of what is not a stream.
const (
	answerMax = 64 << 20 // bytes of a JSON answer
	errorMax  = 64 << 10 // bytes of an error's body that are read
)

// repeat says what may be asked again after a failure.
type repeat int

const (
	// whenRefused: only what was refused with 429 or not sent at all.
	whenRefused repeat = iota
	// always: asking twice is as asking once.
	always
)

// call is one request.
type call struct {
	op      string
	method  string
	path    string // of segments that are escaped
	query   url.Values
	in      any                       // a body for JSON; nil: none
	body    func() (io.Reader, error) // another body, made anew for each attempt
	header  http.Header
	session string
	repeat  repeat
	timeout time.Duration // of each attempt; 0: quickTimeout
	slides  bool          // the timeout is for each time in which no byte moves
	once    bool          // the caller makes further attempts
}

// do makes the call and reads its answer into out, which may be nil.
func (c *Client) do(ctx context.Context, r call, out any) error {
	resp, text, err := c.answer(ctx, r)
	if err != nil {
		return err
	}
	if len(text) > answerMax {
		return c.nonsense(r, resp, "the answer is larger than 64 MiB", nil)
	}
	if out == nil || len(bytes.TrimSpace(text)) == 0 && isEmpty(out) {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		err := c.nonsense(r, resp, "the answer is not the JSON that was expected", text)
		if r.repeat != always { // it was carried out, perhaps
			return &UnknownOutcomeError{Op: r.op, Err: err}
		}
		return err
	}
	return nil
}

// answer reads the whole body of an answer. One that breaks off is as any other
// failure of the network.
func (c *Client) answer(ctx context.Context, r call) (*http.Response, []byte, error) {
	for attempt := 0; ; attempt++ {
		resp, err := c.send(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, answerMax+1))
		_ = resp.Body.Close() // it was read, or is of no use
		if err == nil && (r.repeat != always || len(text) > answerMax || len(bytes.TrimSpace(text)) == 0 || json.Valid(text) || !begins(text)) {
			return resp, text, nil
		}
		if err == nil { // it seems complete and is not
			err = io.ErrUnexpectedEOF
		}
		if r.repeat != always {
			return nil, nil, &UnknownOutcomeError{Op: r.op, Err: c.network(err)}
		}
		if !c.again(ctx, r, nil, attempt) {
			return nil, nil, fmt.Errorf("%s: the answer broke off: %w", r.op, c.network(err))
		}
	}
}

// begins says that text begins as the answers of the service do.
func begins(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

func isEmpty(out any) bool {
	_, ok := out.(*struct{})
	return ok
}

// nonsense is an answer that cannot be used although its status is a success.
func (c *Client) nonsense(r call, resp *http.Response, message string, text []byte) *Error {
	e := c.errorOf(r.op, r.session, resp, text)
	e.Code, e.Message = "", message
	return e
}

// send makes the call, again where that is right, and reports an answer of
// 2xx whose body the caller closes.
func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	if err := c.init(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.op, err)
	}
	for attempt := 0; ; attempt++ {
		resp, sent, err := c.attempt(ctx, r, attempt)
		if err == nil && resp.StatusCode/100 == 2 {
			return resp, nil
		}
		var failure error
		var e *Error
		if err != nil {
			failure = err
			if sent && r.repeat != always {
				return nil, &UnknownOutcomeError{Op: r.op, Err: err}
			}
			failure = fmt.Errorf("%s: %w", r.op, err)
		} else {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, errorMax)) // a part of the words is better than none
			_ = resp.Body.Close()
			e = c.errorOf(r.op, r.session, resp, text)
			failure = e
			if e.open() && r.repeat != always {
				return nil, &UnknownOutcomeError{Op: r.op, Err: e}
			}
		}
		if !c.again(ctx, r, e, attempt) {
			return nil, failure
		}
	}
}

// again waits until another attempt is due, and says that there is one. A wait
// that ctx does not leave time for is not begun.
func (c *Client) again(ctx context.Context, r call, e *Error, attempt int) bool {
	wait, again := c.backoff(e, attempt)
	if !again || r.once || ctx.Err() != nil {
		return false
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	return pause(ctx, wait) == nil
}

// Retries, as the service's own client makes them.
const (
	retries       = 2
	firstWait     = 400 * time.Millisecond
	retryAfterMax = 20 * time.Second // a longer Retry-After is not waited for
	windowMax     = time.Minute      // nor is the end of a rate limit's window that is later
)

// backoff says whether a failure is worth another attempt, and when. e is nil
// for one of the network.
func (c *Client) backoff(e *Error, attempt int) (wait time.Duration, again bool) {
	if attempt >= retries {
		return 0, false
	}
	wait = time.Duration(float64(firstWait<<attempt) * (1 + c.random()))
	switch {
	case e == nil:
		return wait, true
	case !e.passing():
		return 0, false
	case e.window:
		return wait + e.RetryAfter, e.RetryAfter <= windowMax
	}
	return wait + e.RetryAfter, e.RetryAfter <= retryAfterMax
}

// attempt makes the call once. sent says that the service may have got the request.
func (c *Client) attempt(ctx context.Context, r call, n int) (resp *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	g := guarded(ctx, r.limit(ctx, n), r.slides)
	defer func() {
		if resp == nil {
			g.stop()
		}
	}()
	req, err := c.request(g, r)
	if err != nil {
		return nil, false, err
	}
	began := time.Now()
	resp, err = c.http.Do(req)
	attrs := []slog.Attr{
		slog.String("op", r.op), slog.String("method", r.method), slog.String("path", r.path),
		slog.Int("attempt", n+1), slog.Duration("took", time.Since(began)),
	}
	if err != nil {
		resp, err = nil, c.network(g.cause(err))
		c.log(ctx, "vercel request failed", append(attrs, slog.String("error", err.Error()))...)
		return nil, wrote.Load(), err
	}
	g.rest()
	resp.Body = received{resp.Body, g}
	c.clock(resp.Header.Get("Date"))
	c.log(ctx, "vercel request", append(attrs, slog.Int("status", resp.StatusCode), slog.String("x_vercel_id", clip(resp.Header.Get("X-Vercel-Id"), 200)))...)
	return resp, true, nil
}

// limit is that of attempt n. One that may be followed by another leaves half of
// ctx's time to it.
func (r *call) limit(ctx context.Context, n int) time.Duration {
	limit := cmp.Or(r.timeout, quickTimeout)
	if end, ok := ctx.Deadline(); ok && r.repeat == always && !r.slides && !r.once && n < retries {
		limit = min(limit, time.Until(end)/2)
	}
	return max(limit, time.Millisecond)
}

// network is err without the URL, whose query is of no use to anybody.
func (c *Client) network(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if text := err.Error(); c.Token != "" && strings.Contains(text, c.Token) {
		return errors.New(c.clean(text))
	}
	return err
}

func (c *Client) request(g *guard, r call) (*http.Request, error) {
	var body io.Reader
	switch {
	case r.body != nil:
		b, err := r.body()
		if err != nil {
			return nil, err
		}
		body = sent{b, g}
	case r.in != nil:
		b, err := marshal(r.in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	q := url.Values{}
	if c.team != "" {
		q.Set("teamId", c.team)
	}
	for k, vs := range r.query {
		for _, v := range vs {
			if v != "" {
				q.Add(k, v)
			}
		}
	}
	at := c.base.String() + r.path
	if len(q) > 0 {
		at += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(g.ctx, r.method, at, body)
	if err != nil {
		if cl, ok := body.(io.Closer); ok {
			_ = cl.Close() // whoever writes into it ends
		}
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, vs := range r.header {
		req.Header[k] = vs
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	agent := c.UserAgent
	if agent == "" {
		agent = "egressd"
	}
	req.Header.Set("User-Agent", agent)
	return req, nil
}

// marshal is JSON without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// clock remembers how far the service's clock is off.
func (c *Client) clock(date string) {
	if at, err := http.ParseTime(date); err == nil {
		c.mu.Lock()
		c.skew = at.Sub(c.now())
		c.mu.Unlock()
	}
}

// serviceTime is t on the service's clock.
func (c *Client) serviceTime(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.skew)
}

// segment is one name or id as a part of a path.
func segment(what, s string) (string, error) {
	if s == "" || s == "." || s == ".." || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", invalid("the %s %q is not one", what, clip(s, 100))
	}
	return url.PathEscape(s), nil
}

// idPath joins fixed words and one id.
func idPath(before, what, id, after string) (string, error) {
	s, err := segment(what, id)
	if err != nil {
		return "", err
	}
	return before + s + after, nil
}

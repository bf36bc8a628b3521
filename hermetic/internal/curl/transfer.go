package curl

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/internal/fetch"
)

// transfer is one URL of a curl: retries and redirects are within it.
type transfer struct {
	*runner
	s     *settings
	url   globbed
	at    int // which of the settings' URLs
	trust *fetch.Trust

	upload string // the -T that goes with this URL; "" is none

	dest  *destination
	stats stats
}

// stats are what -w tells.
type stats struct {
	clock     fetch.Clocks
	url       string
	effective string
	method    string
	answer    *fetch.Answer
	redirects int
	redirect  string // where a Location led that was not followed
	headers   int64  // bytes of all heads
	requests  int64
	got       int64
	sent      int64
	calls     int
	redirTime time.Duration
	total     time.Duration
	failure   *fetch.Failure
	number    int
}

// run makes the transfer and tells what went wrong.
func (x *transfer) run(ctx context.Context) *fetch.Failure {
	x.stats.number = x.count
	x.count++
	began := x.c.Now()
	delay := x.s.retryDelay
	for left := x.s.retries; ; left-- {
		f := x.once(ctx)
		why, wait := x.again(f)
		if why == "" || left <= 0 || ctx.Err() != nil {
			return x.finish(f)
		}
		if wait == 0 {
			if wait = delay; wait == 0 {
				wait = time.Second
			}
			if x.s.retryDelay == 0 {
				delay = min(2*wait, 10*time.Minute)
			}
		}
		if x.s.retryMax > 0 && x.c.Now().Sub(began)+wait > x.s.retryMax {
			return x.finish(f)
		}
		if f != nil {
			x.tell(f)
		}
		if !x.g.silent {
			fmt.Fprint(x.stderr, warning(fmt.Sprintf("Problem%s. Will retry in %d seconds. %d retries left.", why, int(wait.Seconds()), left)))
		}
		if !fetch.Pause(ctx, wait) {
			return x.finish(f)
		}
		x.dest.rewind()
	}
}

// again says why a transfer is worth another attempt; "" is not. What the gate
// refused is not.
func (x *transfer) again(f *fetch.Failure) (why string, wait time.Duration) {
	status := 0
	if a := x.stats.answer; a != nil && a.Resp != nil {
		status = a.Resp.StatusCode
		var n int
		if err := number(a.Resp.Header.Get("Retry-After"), &n, 0); err == nil {
			wait = time.Duration(n) * time.Second
		}
	}
	switch {
	case f != nil && f.Denied:
		return "", 0
	case status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504:
		return ": HTTP error", wait
	case f == nil:
		return "", 0
	case f.Code == fetch.ExitTimeout || f.Code == fetch.ExitResolve:
		return ": timeout", 0
	case x.s.retryRefused && f.Code == fetch.ExitConnect:
		return ": connection refused", 0
	case x.s.retryAll && f.Code != fetch.ExitURL && f.Code != fetch.ExitProtocol && f.Code != fetch.ExitWrite:
		return " (retrying all errors)", 0
	}
	return "", 0
}

// finish closes what was written and tells the end of it.
func (x *transfer) finish(f *fetch.Failure) *fetch.Failure {
	if x.dest != nil {
		if df := x.dest.end(f); f == nil {
			f = df
		}
	}
	x.stats.failure = f
	x.stats.total = x.stats.clock.Elapsed()
	if f != nil {
		x.tell(f)
	}
	x.writeOut()
	return f
}

// once is one attempt.
func (x *transfer) once(parent context.Context) *fetch.Failure {
	x.stats = stats{clock: fetch.Clocks{Now: x.c.Now, Start: x.c.Now()}, number: x.stats.number, url: x.url.url}
	ctx := parent
	if x.s.maxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(parent, x.s.maxTime, fetch.ErrTotal)
		defer cancel()
	}
	t, f := x.target()
	if f != nil {
		return f
	}
	x.stats.effective = t.String()
	if x.dest == nil {
		if x.dest, f = x.destination(t); f != nil {
			return f
		}
	}
	if x.dest.skip {
		return nil
	}
	q, f := x.request(t)
	if f != nil {
		return f
	}
	return x.hops(ctx, q)
}

// target is the URL with what -G, -T and --url-query add to it.
func (x *transfer) target() (*fetch.Target, *fetch.Failure) {
	t, f := fetch.ParseURL(x.url.url, x.s.scheme, x.s.asIs)
	if f != nil {
		return nil, f
	}
	if !x.s.protocols[t.Scheme] || t.Scheme != "http" && t.Scheme != "https" {
		return nil, fetch.Fail(fetch.ExitProtocol, "Protocol \"%s\" not supported or disabled in libcurl", t.Scheme)
	}
	if t.HasUser && x.s.noLogin {
		return nil, fetch.Fail(fetch.ExitLogin, "Login denied")
	}
	add := append([]string{}, x.s.query...)
	if x.s.get && len(x.s.data) > 0 {
		add = append(add, string(x.s.data))
	}
	for _, q := range add {
		switch t.Query {
		case "", "?":
			t.Query = "?" + fetch.EscapeHigh(q)
		default:
			t.Query += "&" + fetch.EscapeHigh(q)
		}
	}
	if up := x.upload; up != "" && up != "-" && up != "." && strings.HasSuffix(t.Path, "/") {
		t.Path += pathEscape(path.Base(up))
	}
	return t, nil
}

func pathEscape(s string) string { return strings.ReplaceAll(formEscape(s), "+", "%20") }

// hops makes the request and follows where it leads, each hop a request of its
// own that the gate judges.
func (x *transfer) hops(ctx context.Context, q *request) *fetch.Failure {
	for {
		x.stats.method = q.method
		a, f := x.call(q).Do(ctx)
		if a != nil {
			x.stats.answer = a
		}
		if f != nil {
			return f
		}
		next, f := x.hop(ctx, q, a)
		a.Close()
		x.stats.sent += a.Sent
		if f != nil || next == nil {
			return f
		}
		q = next
	}
}

// hop handles one answer; next is where it redirects to and is followed.
func (x *transfer) hop(ctx context.Context, q *request, a *fetch.Answer) (next *request, f *fetch.Failure) {
	x.stats.calls++
	x.stats.headers += int64(len(a.Heads))
	x.stats.requests += a.HeadOut
	if x.s.cookies {
		x.jar.Take(q.to, a.Resp.Header)
	}
	if f := x.dest.heads(a); f != nil {
		return nil, f
	}
	location := a.Resp.Header.Get("Location")
	redirects := a.Resp.StatusCode/100 == 3 && location != "" && a.Resp.StatusCode != 304
	if redirects {
		to, f := q.to.Follow(location, x.s.asIs)
		if f == nil {
			x.stats.redirect = to.String()
		}
		if x.s.follow {
			return x.redirect(ctx, q, a, to, f)
		}
	}
	return nil, x.final(ctx, a)
}

func (x *transfer) redirect(ctx context.Context, q *request, a *fetch.Answer, to *fetch.Target, f *fetch.Failure) (*request, *fetch.Failure) {
	if f != nil {
		return nil, f
	}
	if !x.s.redirProtocols[to.Scheme] || !x.s.protocols[to.Scheme] || to.Host == "" {
		return nil, fetch.Fail(fetch.ExitProtocol, "Protocol \"%s\" not supported or disabled in libcurl", to.Scheme)
	}
	if x.s.maxRedirects >= 0 && x.stats.redirects >= x.s.maxRedirects || x.stats.redirects >= redirectsMost {
		return nil, fetch.Fail(fetch.ExitRedirects, "Maximum (%d) redirects followed", x.s.maxRedirects)
	}
	if f := fetch.TimedOut(ctx, x.stats.clock, 0); f != nil {
		return nil, f
	}
	_, _ = io.CopyN(io.Discard, a.Body, bodyDrop) // for politeness only
	x.stats.redirects++
	x.stats.redirect = ""
	x.stats.redirTime = x.stats.clock.Elapsed()
	x.note('*', fmt.Sprintf("Issue another request to this URL: '%s'", to))
	x.stats.effective = to.String()
	return q.next(x, to, a.Resp.StatusCode), nil
}

// Implementation constants.
const (
	redirectsMost = 1000     // where --max-redirs is -1
	bodyDrop      = 16 << 10 // bytes of a redirect's body that are read
)

// final delivers the answer that is none more to follow.
func (x *transfer) final(ctx context.Context, a *fetch.Answer) *fetch.Failure {
	status := a.Resp.StatusCode
	refused := status >= 400 && !(status == 416 && x.s.resumed)
	if x.s.failing && refused {
		return fetch.Fail(fetch.ExitHTTP, "The requested URL returned error: %d", status)
	}
	if x.s.resumed && x.dest.offset > 0 && status == 416 {
		return nil // there is nothing more
	}
	if x.s.resumed && x.dest.offset > 0 && status/100 == 2 && status != 206 && x.stats.method == "GET" {
		return fetch.Fail(fetch.ExitRange, "HTTP server doesn't seem to support byte ranges. Cannot resume.")
	}
	if f := x.dest.begin(a); f != nil {
		return f
	}
	if f := x.copy(ctx, a); f != nil {
		return f
	}
	x.dest.done(a)
	if x.s.failBody && refused {
		return fetch.Fail(fetch.ExitHTTP, "The requested URL returned error: %d", status)
	}
	return nil
}

// copy brings the body to where it goes.
func (x *transfer) copy(ctx context.Context, a *fetch.Answer) *fetch.Failure {
	if x.stats.method == "HEAD" {
		return nil
	}
	limit := x.s.maxSize
	if limit > 0 && a.Resp.ContentLength > limit {
		return fetch.Fail(fetch.ExitTooLarge, "Maximum file size exceeded")
	}
	if limit == 0 {
		limit = x.dest.most()
	}
	buf := make([]byte, 32<<10)
	first := true
	for {
		n, err := a.Body.Read(buf)
		if n > 0 {
			if first {
				x.note('{', fmt.Sprintf("[%d bytes data]", n))
				first = false
			}
			x.stats.got += int64(n)
			if x.stats.got > limit {
				return fetch.Fail(fetch.ExitTooLarge, "Maximum file size exceeded")
			}
			if f := x.dest.write(buf[:n]); f != nil {
				return f
			}
			if err := x.c.Budget.Steps(int64(n)>>10 + 1); err != nil {
				return fetch.Fail(fetch.ExitTimeout, "Operation was aborted")
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return x.broken(ctx, a, err)
		}
	}
}

func (x *transfer) broken(ctx context.Context, a *fetch.Answer, err error) *fetch.Failure {
	if f, ok := err.(*fetch.Failure); ok { //nolint:errorlint // ours come bare
		return f
	}
	if f := fetch.TimedOut(ctx, x.stats.clock, x.stats.got); f != nil {
		return f
	}
	if err == io.ErrUnexpectedEOF || isClosed(err) { //nolint:errorlint // package http gives them bare
		return fetch.Fail(fetch.ExitPartial, "%s", a.Remaining(x.stats.got))
	}
	return fetch.Fail(fetch.ExitReceive, "Recv failure: %v", err)
}

func isClosed(err error) bool {
	return strings.Contains(err.Error(), syscall.ECONNRESET.Error()) || strings.Contains(err.Error(), "closed")
}

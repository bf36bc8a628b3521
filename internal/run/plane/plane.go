// Package plane is a client of the control plane that gives runs to runners: the part
// of its HTTP API that a runner speaks.
//
//	c, err := plane.New("https://plane.example.com", roots)
//	who, err := c.Enroll(ctx, token, publicPEM, "default")
//	claim, err := c.Claim(ctx, who.Token, "default") // nil: there is nothing to do
//	err = c.Events(ctx, claim.RunID, claim.Token, entries)
//	signed, err := c.Complete(ctx, claim.RunID, claim.Token, receipt)
//
// A call is tried again while no answer comes, or one that the plane is busy, if it does
// no harm when it has been done already: all but claiming. Every attempt has a deadline,
// every answer a bound. Safe for concurrent use.
package plane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"egressd/internal/run/receipt/canonical"
)

// Bounds.
const (
	maxAnswer = 64 << 20  // bytes of an answer in JSON
	maxBlob   = 512 << 20 // bytes of a blob
	attempt   = 60 * time.Second
	pause     = 20 * time.Millisecond // after the first attempt; each further one is twice as long
	maxPause  = 5 * time.Second
)

// Client speaks to one plane.
type Client struct {
	// Patience is how long a call is tried again; zero: until its context ends.
	Patience time.Duration

	base *url.URL
	http *http.Client
}

// Error is an answer of the plane that says no.
type Error struct {
	Status  int // of HTTP
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("the plane says: %s (status %d)", e.Message, e.Status)
}

// New is a client of the plane at an http or https URL. roots are the authorities whose
// certificates it may have; nil: those of the system.
//
// Threat: claims hold secrets in the clear -> plain http is for this machine alone.
func New(base string, roots *x509.CertPool) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a plane: write https://HOST", base)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("%q: a plane tells secrets: write https://, or http:// for one on this machine", base)
	}
	t := &http.Transport{
		DialContext:     (&net.Dialer{Timeout: attempt}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true,
	}
	return &Client{base: u, http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Loopback reports whether the plane is on this machine.
func (c *Client) Loopback() bool { return loopback(c.base.Hostname()) }

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// request is one call.
type request struct {
	method, path string
	bearer       string
	body         []byte
	kind         string // of the body
	limit        int64  // bytes of the answer
	again        bool   // it may be sent again when no answer came
}

// do sends a request, and again while that helps. unsure reports that an attempt before
// the one that was answered may have arrived.
func (c *Client) do(ctx context.Context, r request) (body []byte, unsure bool, err error) {
	if c.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Patience)
		defer cancel()
	}
	for wait := pause; ; wait = min(2*wait, maxPause) {
		body, err = c.once(ctx, r)
		if err == nil || !r.again || !busy(err) || ctx.Err() != nil {
			return body, unsure, err
		}
		unsure = true
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, unsure, err
		}
	}
}

// busy reports whether err is no answer, or one that asks to come again.
func busy(err error) bool {
	no := (*Error)(nil)
	if !errors.As(err, &no) {
		return true
	}
	switch no.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (c *Client) once(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base.String()+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "launch-runner")
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if r.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, r.limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > r.limit {
		return nil, &Error{resp.StatusCode, fmt.Sprintf("an answer of more than %d bytes", r.limit)}
	}
	if resp.StatusCode/100 == 2 {
		return body, nil
	}
	var no struct {
		Error   string   `json:"error"`
		Reasons []string `json:"reasons"`
	}
	if json.Unmarshal(body, &no) != nil || no.Error == "" {
		no.Error = fmt.Sprintf("plane request failed with status %d", resp.StatusCode)
	}
	if len(no.Reasons) > 0 {
		no.Error += ": " + strings.Join(no.Reasons, "; ")
	}
	return nil, &Error{resp.StatusCode, no.Error}
}

// post sends JSON and reads JSON.
func (c *Client) post(ctx context.Context, path string, body, answer any, again bool) (unsure bool, err error) {
	text, err := canonical.Marshal(body)
	if err != nil {
		return false, err
	}
	got, unsure, err := c.do(ctx, request{method: http.MethodPost, path: path, body: text, kind: "application/json", limit: maxAnswer, again: again})
	if err != nil || answer == nil {
		return unsure, err
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return unsure, fmt.Errorf("the plane's answer to %s: %w", path, err)
	}
	return unsure, nil
}

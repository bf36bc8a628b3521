package api

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"egressd/sandbox/vercel/api/account"
)

// DefaultBaseURL is the hosted service.
const DefaultBaseURL = "https://vercel.com/api"

// Client talks to one service for one team. Methods that take a name address a
// sandbox, which may be kept; those that take a session id address one boot of
// it. Every method ends with its context. They are safe for concurrent use; the
// fields are not changed after the first of them.
//
// Threat: whoever reads logs, errors or another host's requests learns the token
// -> it is in one header of requests to BaseURL's own origin, redirects are not
// followed, plain HTTP is for this machine alone, and every text that comes back
// is searched for it -> whoever owns BaseURL, and a proxy that ends TLS.
type Client struct {
	BaseURL   string // "": DefaultBaseURL; http:// only for this machine itself
	Token     string
	TeamID    string    // ignored for a token that names its own team
	ProjectID string    // "": the token's own
	From      string    // where the token comes from, for errors; "": not said
	Expires   time.Time // when the token expires, from account.Credentials; zero: the token's own claim

	HTTP      *http.Client // nil: one of the client's own. Timeouts and redirects of it are not used
	Proxy     *url.URL     // an HTTP proxy for the client's own; nil: none
	UserAgent string       // "": "egressd"
	Log       *slog.Logger // every request, without bodies and credentials; nil: nowhere

	// Redact removes secrets from texts of the service that become errors. The
	// token is always removed; nil removes nothing else.
	Redact func(string) string
	// Now is the clock; nil: the real one.
	Now func() time.Time

	once   sync.Once
	http   *http.Client
	base   *url.URL
	bad    error // why the client cannot be used
	team   string
	ends   time.Time
	random func() float64

	mu   sync.Mutex
	seen map[string]bool // commands that this client started or took over
	skew time.Duration   // of the service's clock, from its last answer
}

// Implementation constants.
const (
	dialTimeout = 15 * time.Second
	idleTimeout = 90 * time.Second
	pingAfter   = 30 * time.Second
)

// init makes what the methods use.
func (c *Client) init() error {
	c.once.Do(func() {
		if c.random == nil {
			c.random = rand.Float64
		}
		c.seen = map[string]bool{}
		c.base, c.bad = parseBase(c.BaseURL)
		if c.bad == nil && c.Token == "" {
			c.bad = &account.MissingError{Missing: []string{"VERCEL_TOKEN"}}
		}
		c.team, c.ends = c.TeamID, c.Expires
		if claims, ok := account.ReadClaims(c.Token); ok {
			c.team = claims.TeamID
			if c.ends.IsZero() {
				c.ends = claims.Expires
			}
		}
		c.http = c.client()
	})
	if c.bad != nil {
		return c.bad
	}
	if !c.ends.IsZero() && !c.now().Before(c.ends) {
		return &account.ExpiredError{At: c.ends, From: c.From}
	}
	return nil
}

func (c *Client) client() *http.Client {
	own := c.HTTP
	if own == nil {
		t := &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout:     idleTimeout,
			MaxIdleConnsPerHost: 8,
			ForceAttemptHTTP2:   true,
			// A stream may be silent for hours; a connection that is dead is not.
			HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: dialTimeout},
		}
		if c.Proxy != nil {
			t.Proxy = http.ProxyURL(c.Proxy)
		}
		own = &http.Client{Transport: t}
	}
	h := *own
	h.Timeout = 0 // it would end streams; contexts bound other requests
	h.Jar = nil
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

func parseBase(base string) (*url.URL, error) {
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, invalid("the base URL is not one")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, invalid("the base URL holds more than a host and a path")
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return u, nil
	case u.Scheme == "http":
		return nil, invalid("the base URL is http:// and not of this machine: the token would be readable on the way")
	}
	return nil, invalid("the base URL is not https://")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close gives up idle connections of the client's own.
func (c *Client) Close() {
	if c.http != nil && c.HTTP == nil {
		c.http.CloseIdleConnections()
	}
}

// LogValue keeps the token out of logs.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String is the client without its token.
func (c *Client) String() string { return "vercel api client of team " + c.TeamID }

// GoString keeps the token out of %#v.
func (c *Client) GoString() string { return c.String() }

// project returns the project of requests; "" if neither the field nor the token
// names one.
func (c *Client) project() string {
	if c.ProjectID != "" {
		return c.ProjectID
	}
	claims, _ := account.ReadClaims(c.Token)
	return claims.ProjectID
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// clean removes secrets from a text of the service.
func (c *Client) clean(s string) string {
	if c.Redact != nil {
		s = c.Redact(s)
	}
	if c.Token != "" {
		s = strings.ReplaceAll(s, c.Token, "[token]")
	}
	return s
}

func (c *Client) log(ctx context.Context, msg string, attrs ...slog.Attr) {
	if c.Log != nil {
		c.Log.LogAttrs(ctx, slog.LevelDebug, msg, attrs...)
	}
}

// pause waits for d; its error is the context's.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

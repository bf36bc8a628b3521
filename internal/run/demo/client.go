package demo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Client is the program that the demo runs inside.
type Client struct {
	Out      io.Writer
	Port     string // of the origin
	CA       string // PEM
	ProxyURL string // the value of HTTPS_PROXY, which the gate has set

	wrong []string
}

const patience = 5 * time.Second

// Run makes the requests and prints what happened to each. It reports an error if
// one did not end as it should.
func (c *Client) Run() error {
	c.request("1", "a request to an allowed host, through the proxy variables", AllowedHost, true, true)
	c.request("2", "a request to a host that no rule names", BlockedHost, true, false)
	c.request("3", "an allowed host by a program that ignores the proxy variables", AllowedHost, false, true)
	c.request("4", "the other host, proxy variables ignored", BlockedHost, false, false)
	c.literal("5", "an address, no name asked", "203.0.113.7:22")
	c.datagram("6", "UDP, as QUIC or a DNS tunnel would use it", "203.0.113.7:4433")
	if len(c.wrong) > 0 {
		return errors.New("demo: " + strings.Join(c.wrong, "; "))
	}
	return nil
}

func (c *Client) say(n, what, outcome, detail string) {
	_, _ = fmt.Fprintf(c.Out, "  %s. %s\n     %-8s %s\n", n, what, outcome, detail)
}

// verdict prints and counts one outcome.
func (c *Client) verdict(n, what, target string, want bool, err error, detail string) {
	outcome := "ALLOWED"
	if err != nil {
		outcome, detail = "BLOCKED", err.Error()
	}
	c.say(n, what, outcome, target+": "+detail)
	if (err == nil) != want {
		c.wrong = append(c.wrong, fmt.Sprintf("step %s was %s", n, strings.ToLower(outcome)))
	}
}

func (c *Client) request(n, what, host string, proxied, want bool) {
	target := "https://" + net.JoinHostPort(host, c.Port) + "/"
	body, err := c.get(target, proxied)
	if !proxied && want && err == nil {
		body += " (captured on its way out)"
	}
	c.verdict(n, what, target, want, err, body)
}

func (c *Client) get(target string, proxied bool) (string, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(c.CA)) {
		return "", errors.New("demo: no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}
	if proxied {
		u, err := url.Parse(c.ProxyURL)
		if err != nil || c.ProxyURL == "" {
			return "", fmt.Errorf("demo: HTTPS_PROXY=%q is not a proxy", c.ProxyURL)
		}
		transport.Proxy = http.ProxyURL(u)
		transport.OnProxyConnectResponse = explained
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return strings.TrimSpace(string(body)), errors.Join(err, resp.Body.Close())
}

// explained keeps the gate's own words for its refusal (RFC 9209), which
// net/http drops.
func explained(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("%s, Proxy-Status: %s", resp.Status, resp.Header.Get("Proxy-Status"))
}

func (c *Client) literal(n, what, target string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err == nil {
		err = refused(ctx, conn)
	}
	c.verdict(n, what, target, false, err, "connected")
}

// refused waits for the end of a captured connection: the gate accepts it, judges
// it, and closes it.
func refused(ctx context.Context, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	_, err := conn.Read(make([]byte, 1))
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("closed by the gate")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("refused")
	}
	return err
}

func (c *Client) datagram(n, what, target string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "udp", target)
	if err == nil {
		if _, err = conn.Write([]byte("hello")); err == nil {
			err = refused(ctx, conn)
		}
	}
	c.verdict(n, what, target, false, err, "answered")
}

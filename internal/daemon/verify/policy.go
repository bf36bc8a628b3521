package verify

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// policyChecks try URLs that must work and URLs that must not: by the explicit
// door where there is one, and without it.
func policyChecks(c Config) []check {
	var checks []check
	for _, u := range c.Allowed {
		if c.Proxy != "" {
			checks = append(checks, check{"allowed by the proxy: " + u, allowed(u, c.Proxy)})
		}
		checks = append(checks, check{"allowed without the proxy: " + u, allowed(u, "")})
	}
	for _, u := range c.Denied {
		if c.Proxy != "" {
			checks = append(checks, check{"denied by the proxy: " + u, taught(u)})
		}
		checks = append(checks, check{"denied without the proxy: " + u, denied(u)})
	}
	return checks
}

// maxBody bounds what is read of a response.
const maxBody = 64 << 10

// answer is a response and the start of its body.
type answer struct {
	status int
	header http.Header
	body   string
}

// ours reports whether egressd gave the answer rather than the origin.
func (a answer) ours() bool {
	return strings.HasPrefix(a.header.Get("Proxy-Status"), "egressd;") && a.header.Get("X-Egressd-Reason") != ""
}

func fetch(ctx context.Context, target, proxy string) (answer, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if proxy != "" {
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
		transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
			if r.StatusCode == http.StatusOK {
				return nil
			}
			return &connectError{read(r)}
		}
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	resp, err := transport.RoundTrip(req)
	var refused *connectError
	if errors.As(err, &refused) {
		return refused.answer, nil
	}
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return read(resp), nil
}

func read(r *http.Response) answer {
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // a body cut short is judged as far as it came
	return answer{r.StatusCode, r.Header, string(b)}
}

// connectError is a proxy's answer to CONNECT that is not a success.
type connectError struct{ answer }

func (e *connectError) Error() string { return fmt.Sprintf("the proxy answers %d", e.status) }

func allowed(target, proxy string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel := context.WithTimeout(ctx, config.timeout())
		defer cancel()
		a, err := fetch(ctx, target, proxy)
		switch {
		case err != nil:
			return leak(err.Error(), advisePolicy)
		case a.ours():
			return leak(fmt.Sprintf("egressd answers %d: %s", a.status, firstLine(a.body)), advisePolicy)
		default:
			return pass(fmt.Sprintf("the origin answers %d", a.status))
		}
	}
}

// taught requires that egressd says no, why, and what to do.
func taught(target string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel := context.WithTimeout(ctx, config.timeout())
		defer cancel()
		a, err := fetch(ctx, target, config.Proxy)
		switch {
		case err != nil:
			return leak(err.Error(), "is egressd running, and is this its proxy address? --proxy HOST:PORT")
		case !a.ours():
			return leak(fmt.Sprintf("answered with %d, not by egressd", a.status), advisePolicy)
		case a.status != http.StatusForbidden || !strings.Contains(a.body, "Reason: "):
			return leak(fmt.Sprintf("egressd answers %d: %s", a.status, firstLine(a.body)), advisePolicy)
		default:
			return pass(firstLine(a.body))
		}
	}
}

// denied requires that the origin does not answer.
func denied(target string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel := context.WithTimeout(ctx, config.timeout())
		defer cancel()
		a, err := fetch(ctx, target, "")
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return leak("nothing answers, and nobody here refused it", adviseCapture)
		case err != nil:
			return pass(short(err))
		case a.ours():
			return pass(firstLine(a.body))
		default:
			return leak(fmt.Sprintf("the origin answers %d", a.status), advisePolicy)
		}
	}
}

func firstLine(s string) string {
	line, _ := bufio.NewReader(strings.NewReader(s)).ReadString('\n')
	return strings.TrimSpace(line)
}

// short is an error without the addresses around it.
func short(err error) string {
	var dns *net.DNSError
	var alert tls.AlertError
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &alert):
		return alert.Error()
	default:
		return err.Error()
	}
}

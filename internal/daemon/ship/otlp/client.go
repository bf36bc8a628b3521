package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"egressd/internal/daemon/ship"
)

// Implementation constants.
const (
	sendTimeout = 30 * time.Second
	maxAnswer   = 64 << 10 // bytes of an answer that are read
)

// Client sends to one collector. Safe for concurrent use.
type Client struct {
	URL     string       // with the path, usually /v1/logs: see ParseURL
	Header  http.Header  // besides those of the protocol, such as a token
	HTTP    *http.Client // which must not follow redirections with the headers
	Version string       // of egressd
}

// ParseURL reads where a collector is: without a path, it is the protocol's own.
// secret: headers with a token go along, which only leave this machine encrypted.
func ParseURL(text string, secret bool) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is not a URL such as http://127.0.0.1:4318", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%s: scheme, host, port and path only: a token goes into a header", u.Redacted())
	case u.Scheme == "http" && secret && !loopback(u.Hostname()):
		return "", fmt.Errorf("%s: headers would leave this machine unencrypted: write https://", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/logs"
	}
	return u.String(), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Send delivers lines: nil, they were taken; [*ship.Unwanted], this receiver will never
// take them; any other error, not now.
func (c *Client) Send(ctx context.Context, lines [][]byte) error {
	body, err := encode(lines, c.Version, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // one core takes 30,000 lines a second so
	if err == nil {
		_, err = z.Write(body)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, &packed)
	if err != nil {
		return err
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "egressd/"+c.Version)
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the collector's answer: %w", err)
	}
	return judge(resp, answer, len(lines))
}

// judge reads an answer as the protocol says (OTLP 1.7, section OTLP/HTTP response).
func judge(resp *http.Response, answer []byte, lines int) error {
	said := ""
	var status struct{ Message string }
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		said = ": " + strconv.Quote(status.Message[:min(len(status.Message), 200)])
	}
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return partial(answer, lines)
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return &ship.Unwanted{Why: fmt.Sprintf("the collector answers %s%s", resp.Status, said)}
	default:
		err := fmt.Errorf("the collector answers %s%s", resp.Status, said)
		if wait, failed := strconv.Atoi(strings.TrimSpace(resp.Header.Get("Retry-After"))); failed == nil && wait > 0 {
			return &ship.RetryAfter{Err: err, Wait: time.Duration(min(wait, 3600)) * time.Second}
		}
		return err
	}
}

// partial looks for lines that the receiver left out of those it took.
func partial(answer []byte, lines int) error {
	var success struct {
		Partial struct {
			Rejected json.Number `json:"rejectedLogRecords"`
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.Unmarshal(answer, &success); err != nil {
		if len(bytes.TrimSpace(answer)) == 0 {
			return nil
		}
		return errors.New("it answers 200, and not as a collector does: is the URL right?")
	}
	if n, err := strconv.ParseInt(success.Partial.Rejected.String(), 10, 64); err == nil && n > 0 {
		return &ship.Unwanted{Some: true, Why: fmt.Sprintf("the collector left out %d of %d lines: %.200q", n, lines, success.Partial.Message)}
	}
	return nil
}

// Package why finds out why a destination is refused: from inside a run by asking
// the gate, from outside by reading the events of a run.
//
//	a, err := why.Ask(ctx, proxy, host, 443)   // inside
//	a, err := why.Look(events, host, 0)        // outside
//	fmt.Print(a.Text)
package why

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"egressd/internal/cli"
	"egressd/policy"
)

// Answer is what was found out.
type Answer struct {
	Allowed bool
	Text    string // some lines for a person or an agent
}

// maxAnswer bounds what is read of the gate's answer, in bytes.
const maxAnswer = 64 << 10

// Proxy reads the address of the gate's proxy out of the value of HTTPS_PROXY. It
// takes what launch sets: an http URL with an address. A gate elsewhere would be
// asked in vain about this run.
func Proxy(value string) (string, error) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return "", errors.New("HTTPS_PROXY is not the one that launch has set")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err != nil || !a.IsLoopback() {
		return "", errors.New("HTTPS_PROXY is not the one that launch has set: it is not on this machine's loopback")
	}
	return u.Host, nil
}

// Ask has the gate behind proxy judge a connection to host and port, as any
// program's, and ends it unused. With --approve the person is asked. The error is a
// gate that does not answer.
func Ask(ctx context.Context, proxy string, host policy.Host, port uint16) (Answer, error) {
	to := net.JoinHostPort(host.String(), strconv.Itoa(int(port)))
	c, err := new(net.Dialer).DialContext(ctx, "tcp", proxy)
	if err != nil {
		return Answer{}, fmt.Errorf("the gate cannot be asked: %w", err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return Answer{}, fmt.Errorf("the gate cannot be asked: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(c, maxAnswer)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return Answer{}, fmt.Errorf("the gate does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return Answer{Allowed: true, Text: "allowed  " + to + "\n"}, nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("the gate does not answer: %w", err)
	}
	word := "denied"
	if resp.StatusCode >= http.StatusInternalServerError {
		word = "failed"
	}
	return Answer{Text: fmt.Sprintf("%-8s %s\n", word, to) + indented(string(body))}, nil
}

// indented is the gate's body but its first line, which says what was asked.
func indented(body string) string {
	var b strings.Builder
	_, rest, _ := strings.Cut(body, "\n")
	for line := range strings.Lines(rest) {
		b.WriteString("  " + cli.Safe(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}

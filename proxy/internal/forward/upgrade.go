package forward

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"egressd/proxy/internal/http1"
)

// upgrade forwards a request that asks for another protocol (RFC 9110 section
// 7.8). goproxy would do for WebSocket, but it sends the 101 in pieces and ends
// both directions when one ends.
func (x *exchange) upgrade(out *http.Request) {
	protocol := out.Header.Get("Upgrade")
	resp, err := x.roundTrip(out)
	if err != nil {
		x.failed = err
		return
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		x.answer(resp)
		return
	}
	got := resp.Header.Get("Upgrade")
	origin, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !offered(protocol, got) {
		_ = resp.Body.Close()
		x.failed = ErrBadUpgrade
		return
	}
	fromOrigin(resp.Header)
	if err := x.Gate.Incoming(resp); err != nil {
		_ = origin.Close()
		x.failed = err
		return
	}
	resp.Header.Set("Connection", "Upgrade")
	resp.Header.Set("Upgrade", got)
	x.switchProtocols(resp.Header, origin, resp.Body)
}

// answer copies the response to an upgrade that was not granted. It goes the
// way of every other response, with the round trip already made.
func (x *exchange) answer(resp *http.Response) {
	if x.failed = x.prepare(resp); x.failed != nil {
		return
	}
	defer resp.Body.Close()
	rw := x.response()
	for name, values := range resp.Header {
		rw.Header()[name] = values
	}
	rw.WriteHeader(resp.StatusCode)
	_, _ = rw.ReadFrom(resp.Body) // a failure is in x.broken, or the client's own
}

// switchProtocols sends the 101 in one write and relays until both sides are
// done. What origin sends is read from arriving.
func (x *exchange) switchProtocols(header http.Header, origin io.ReadWriteCloser, arriving io.Reader) {
	defer origin.Close()
	x.Gate.Upgraded()
	conn, _, err := http.NewResponseController(x.Writer).Hijack()
	if err != nil { // unreachable: HTTP/1 connections can be hijacked once
		x.broken = err
		return
	}
	defer conn.Close()
	var head strings.Builder
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = header.Write(&head) // a strings.Builder takes everything
	head.WriteString("\r\n")
	if _, err := io.WriteString(conn, head.String()); err != nil {
		x.broken = fmt.Errorf("switch protocols: %w", err)
		return
	}
	stop := context.AfterFunc(x.ctx, func() {
		_ = origin.Close()
		_ = conn.Close()
	})
	defer stop()
	x.relayUpgraded(conn, origin, arriving)
}

// offered reports whether the origin chose one protocol that the client named.
func offered(asked, got string) bool {
	got = strings.TrimSpace(got)
	if got == "" || strings.Contains(got, ",") {
		return false
	}
	name, _, _ := strings.Cut(got, "/")
	return http1.IsUpgradeToken(asked, name)
}

// relayUpgraded copies both ways until both sides have ended. The end of one
// direction is passed on as a half-close.
func (x *exchange) relayUpgraded(client, origin io.ReadWriteCloser, arriving io.Reader) {
	up := make(chan error, 1)
	go x.copyUp(client, origin, up)
	_, err := copyOne(client, arriving, x)
	_ = closeWriteOf(client)
	if err != nil {
		_ = client.Close()
	}
	if uerr := <-up; err == nil {
		err = uerr
	}
	x.broken = err
}

func (x *exchange) copyUp(client, origin io.ReadWriteCloser, done chan<- error) {
	err := ErrPanicked
	defer func() { done <- err }()
	defer x.Gate.Survive(func() { _ = origin.Close() })
	_, err = copyOne(origin, client, x)
	_ = closeWriteOf(origin)
	if err != nil {
		_ = origin.Close()
	}
}

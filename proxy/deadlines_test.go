package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/peek"
)

// TestSlowClients gives clients that stop half way their deadline, in fake
// time.
func TestSlowClients(t *testing.T) {
	for _, tt := range []struct {
		name, sent, reason string
	}{
		{"nothing", "", ""},
		{"half a CONNECT", "CONNECT a.exam", "http_request_timeout"},
		{"half a SOCKS5 greeting", "\x05\x02\x00", "http_request_timeout"},
		{"half a SOCKS5 request", "\x05\x01\x00\x05\x01\x00\x03\x09a.e", "http_request_timeout"},
		{"half a SOCKS4 request", "\x04\x01\x00", "http_request_timeout"},
		{"no ClientHello", "CONNECT a.example:443 HTTP/1.1\r\n\r\n", "http_request_timeout"},
		{"half a ClientHello", "CONNECT a.example:443 HTTP/1.1\r\n\r\n\x16\x03\x01", "http_request_timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, "a.example")
				g.answer("a.example", public)
				ours, theirs := net.Pipe()
				start := time.Now()
				go func() {
					_, _ = io.WriteString(ours, tt.sent)
				}()
				go func() { _, _ = io.Copy(io.Discard, ours) }()
				explicit{}.serve(context.Background(), newConn(g.Server, theirs, event.DoorHTTP))
				b := g.bounds()
				if d := time.Since(start); d < b.headTimeout || d > b.headTimeout+b.helloTimeout+2*peek.LingerTimeout {
					t.Errorf("took %v", d)
				}
				_ = theirs.Close()
				ours.Close()
				evs := g.sink.all("network.connected")
				switch {
				case tt.reason == "" && len(evs) != 0:
					t.Errorf("%+v", evs)
				case tt.reason != "" && (len(evs) != 1 || evs[0].Reason != tt.reason):
					t.Errorf("%+v, want %s", evs, tt.reason)
				}
			})
		})
	}
}

// TestIdleAndDuration ends flows that say nothing or go on for too long, in
// fake time.
func TestIdleAndDuration(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit policy.Limits
		every time.Duration // a byte is sent; 0: never
		want  string
		after time.Duration
	}{
		{"idle", policy.Limits{IdleTimeoutSeconds: 60}, 0, "idle", 60 * time.Second},
		{"busy", policy.Limits{IdleTimeoutSeconds: 60, MaxDurationSeconds: 300}, 20 * time.Second, "open for longer", 300 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t)
				g.limit(tt.limit, "raw:a.example:22")
				ctx, cancel := context.WithCancel(context.Background())
				go g.sweeper(ctx)
				client, gate := net.Pipe()
				up, origin := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, origin) }()
				go func() {
					for tt.every > 0 && ctx.Err() == nil {
						wait(ctx, tt.every)
						_, _ = client.Write([]byte("x"))
					}
				}()
				f := newFlow(ctx, newConn(g.Server, gate, event.DoorHTTP), event.DoorConnect)
				f.req = policy.Request{Host: hostOf(t, "a.example"), Port: 22}
				start := time.Now()
				tunnel := newTunnel(f, dial.Result{Conn: up, Decision: policy.Decision{Verdict: policy.Allow}}, false)
				if !tunnel.recordAllowed() {
					t.Fatal("it cannot be recorded")
				}
				tunnel.carryAndWait()
				if d := time.Since(start); d < tt.after || d > tt.after+2*sweepEvery {
					t.Errorf("ended after %v, want %v", d, tt.after)
				}
				if evs := g.sink.all("network.closed"); len(evs) != 1 || !strings.Contains(evs[0].Error, tt.want) {
					t.Errorf("%+v", evs)
				}
				cancel()
				client.Close()
				origin.Close()
			})
		})
	}
}

package proxy

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"egressd/proxy/internal/drops"

	"egressd/event/eventtest"
	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/peek"
)

const (
	connectA = "CONNECT a.example:22 HTTP/1.1\r\n\r\n"
	getWeb   = "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n"
)

// TestSlowLoris fills a gate with clients that say half of what they want, in
// each way, and lets a newcomer in.
func TestSlowLoris(t *testing.T) {
	for name, tt := range map[string]struct {
		sent, told string
		events     int // about the one that made room
	}{
		"half a CONNECT":       {"CONNECT a.exa", "HTTP/1.1 503 ", 1},
		"half a request":       {"GET http://a.example/ HTTP/1.1\r\nX: ", "HTTP/1.1 503 ", 1},
		"half a SOCKS5":        {"\x05\x01\x00", "\x05\x00", 1},
		"half a SOCKS4":        {"\x04\x01\x00", "", 1},
		"no ClientHello":       {"CONNECT a.example:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", 1},
		"no request behind it": {"CONNECT a.example:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", 1},
		"nothing":              {"", "", 0},
		"idle after a request": {getWeb, "HTTP/1.1 200 ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, policy.Limits{Connections: 3}, func(t *testing.T, g *fakeTime) {
				tunnel := g.client(connectA)
				oldest, younger := g.client(tt.sent), g.client(tt.sent)
				before := len(g.sink.all("network.connected"))
				// Nobody has waited for long: the newcomer is the one who is told.
				if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 503 ") {
					t.Errorf("a newcomer at once: %q", c.answer())
				}
				time.Sleep(admission.PatienceFull)
				synctest.Wait()
				if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 200 ") {
					t.Errorf("a newcomer later: %q", c.answer())
				}
				time.Sleep(2 * peek.LingerTimeout)
				synctest.Wait()
				if !oldest.isOver() || !strings.HasPrefix(oldest.answer(), tt.told) {
					t.Errorf("the oldest goes on, or was told %q", oldest.answer())
				}
				if younger.isOver() || tunnel.isOver() {
					t.Error("another connection than the oldest ended")
				}
				made := 0
				for _, e := range g.sink.all("network.connected")[before:] {
					if e.Reason == "connection_limit_reached" && e.Error == evictedDetail {
						made++
					}
				}
				if made != tt.events {
					t.Errorf("%d events about who made room, want %d: %+v", made, tt.events, g.sink.all("network.connected"))
				}
				quiet := 0
				if name == "nothing" {
					quiet = 1
				}
				if n := g.Stats().Dropped; n != uint64(quiet) {
					t.Errorf("dropped %d", n)
				}
			})
		})
	}
}

// TestBusyIsNeverEvicted fills a gate with connections in use.
func TestBusyIsNeverEvicted(t *testing.T) {
	inFakeTime(t, policy.Limits{Connections: 2}, func(t *testing.T, g *fakeTime) {
		a, b := g.client(connectA), g.client(connectA)
		time.Sleep(10 * time.Minute)
		if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 503 ") {
			t.Errorf("%q", c.answer())
		}
		if a.isOver() || b.isOver() {
			t.Error("a tunnel was closed to make room")
		}
	})
	inFakeTime(t, policy.Limits{Connections: 1}, func(t *testing.T, g *fakeTime) {
		g.pin(mustAddr("198.18.0.7"), hostOf(t, "a.example"))
		g.capturedDst.Store(netip.MustParseAddrPort("198.18.0.7:22"))
		captured := &fakeTime{g.testGate, newPipeListener()}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.ServeTransparent(ctx, captured.ln) }()
		a := captured.client("")
		time.Sleep(10 * time.Minute)
		if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 503 ") || a.isOver() {
			t.Errorf("%q; a captured tunnel made room: %v", c.answer(), a.isOver())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDropsAreSummedUp has more clients over the limit than can be told.
func TestDropsAreSummedUp(t *testing.T) {
	inFakeTime(t, policy.Limits{Connections: 1}, func(t *testing.T, g *fakeTime) {
		g.client(connectA)
		for range admission.RefusalsMax {
			g.client("") // says nothing, and so cannot be told yet
		}
		for range 7 {
			if c := g.client(""); !c.isOver() {
				t.Fatal("a connection that cannot be told is kept")
			}
		}
		time.Sleep(sweepEvery)
		synctest.Wait()
		var summed []eventtest.Line
		for _, e := range g.sink.all("network.connected") {
			if e.Flow == 0 {
				summed = append(summed, e)
			}
		}
		if len(summed) != 1 || summed[0].Error != "7 connections "+drops.Full || summed[0].Reason != "connection_limit_reached" || summed[0].Decision != "blocked" {
			t.Errorf("%+v", summed)
		}
		if n := g.Stats().Dropped; n != 7 {
			t.Errorf("dropped %d", n)
		}
		// Those who are over the limit do not keep others from being told for long.
		time.Sleep(refusedPatience)
		synctest.Wait()
		if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 503 ") {
			t.Errorf("%q", c.answer())
		}
	})
}

// TestHeldBytes has unfinished heads take all the memory there is for them.
func TestHeldBytes(t *testing.T) {
	inFakeTime(t, policy.Limits{}, func(t *testing.T, g *fakeTime) {
		if !g.held.Take(admission.HeldBytes) {
			t.Fatal("the memory is taken before anybody came")
		}
		long := strings.Repeat("X-Long: 0123456789\r\n", 500)
		for name, head := range map[string]string{
			"CONNECT": "CONNECT a.example:22 HTTP/1.1\r\n" + long,
			"HTTP":    "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n" + long,
		} {
			c := g.client(head + "\r\n")
			time.Sleep(2 * peek.LingerTimeout)
			synctest.Wait()
			if !strings.HasPrefix(c.answer(), "HTTP/1.1 503 ") || !strings.Contains(c.answer(), "memory") {
				t.Errorf("%s: %q", name, c.answer())
			}
		}
		for i := 1; i <= 2; i++ {
			if e := g.decision(i); e.Reason != "connection_limit_reached" || !strings.Contains(e.Error, "memory") {
				t.Errorf("%+v", e)
			}
		}
		// Short ones have room all the same.
		if c := g.client(connectA); !strings.HasPrefix(c.answer(), "HTTP/1.1 200 ") {
			t.Errorf("%q", c.answer())
		}
		g.held.GiveBack(admission.HeldBytes)
		for _, head := range []string{"CONNECT a.example:22 HTTP/1.1\r\n", "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n"} {
			if c := g.client(head + long + "\r\n"); !strings.HasPrefix(c.answer(), "HTTP/1.1 200 ") {
				t.Errorf("%q", c.answer())
			}
		}
		// Those that break off give back what they held.
		for _, head := range []string{"CONNECT a.example:22 HTTP/1.1\r\n", "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n"} {
			c := g.client(head + long)
			if g.held.Used() == 0 {
				t.Error("a long head without an end holds nothing")
			}
			c.Close()
			time.Sleep(2 * peek.LingerTimeout)
			synctest.Wait()
		}
		if used := g.held.Used(); used != 0 {
			t.Errorf("%d bytes are held for heads that are done", used)
		}
	})
}

// TestTimesAndSizesOfPolicy sets each bound on what a client says.
func TestTimesAndSizesOfPolicy(t *testing.T) {
	limits := policy.Limits{HeadTimeoutSeconds: 3, HelloTimeoutSeconds: 2, HeadBytes: 300, HelloBytes: 200}
	inFakeTime(t, limits, func(t *testing.T, g *fakeTime) {
		for _, tt := range []struct {
			name, sent, reason string
			after              time.Duration
		}{
			{"half a CONNECT", "CONNECT a.exa", "http_request_timeout", 3 * time.Second},
			{"half a request", "GET http://web.exa", "http_request_timeout", 3 * time.Second},
			{"no request", "CONNECT web.example:80 HTTP/1.1\r\n\r\n", "http_request_timeout", 3 * time.Second},
			{"half a SOCKS5", "\x05\x01\x00", "http_request_timeout", 3 * time.Second},
			{"half a hello", "CONNECT a.example:443 HTTP/1.1\r\n\r\n\x16\x03\x01\x01\x00\x01", "http_request_timeout", 2 * time.Second},
			{"long CONNECT", "CONNECT a.example:22 HTTP/1.1\r\nX: " + strings.Repeat("x", 300) + "\r\n\r\n", "http_request_error", 0},
			{"long request", "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\nX: " + strings.Repeat("x", 300) + "\r\n\r\n", "http_request_error", 0},
			{"long hello", "CONNECT a.example:443 HTTP/1.1\r\n\r\n\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03" + strings.Repeat("x", 200), "http_request_error", 0},
		} {
			before := len(g.sink.all("network.connected"))
			c := g.client(tt.sent)
			if tt.after > 0 {
				time.Sleep(tt.after - time.Millisecond)
				synctest.Wait()
				if evs := g.sink.all("network.connected")[before:]; len(evs) > 0 {
					t.Errorf("%s: refused before its time: %+v", tt.name, evs)
				}
			}
			time.Sleep(2*peek.LingerTimeout + time.Millisecond)
			synctest.Wait()
			evs := g.sink.all("network.connected")[before:]
			if len(evs) != 1 || evs[0].Reason != tt.reason || !c.isOver() {
				t.Errorf("%s: over %v, %+v", tt.name, c.isOver(), evs)
			}
		}
	})
}

// TestNoRequest ends connections to an allowed port 80 without a request.
func TestNoRequest(t *testing.T) {
	inFakeTime(t, policy.Limits{}, func(t *testing.T, g *fakeTime) {
		for i, sent := range []string{"CONNECT web.example:80 HTTP/1.1\r\n\r\n", "\x04\x01\x00\x50\x00\x00\x00\x01\x00web.example\x00"} {
			c := g.client(sent)
			c.Close()
			synctest.Wait()
			if e := g.decision(i + 1); e.Reason != "client_closed" || e.Host != "web.example" || e.Port != 80 {
				t.Errorf("%q: %+v", sent, e)
			}
		}
		if n := len(g.sink.all("network.connected")); n != 2 {
			t.Errorf("%d events", n)
		}
	})
}

// TestEndsSayWhy ends flows by each limit and reads their last event.
func TestEndsSayWhy(t *testing.T) {
	limits := policy.Limits{IdleTimeoutSeconds: 60, MaxDurationSeconds: 100, BytesPerFlow: 100}
	inFakeTime(t, limits, func(t *testing.T, g *fakeTime) {
		g.client(connectA)
		time.Sleep(62 * time.Second)
		synctest.Wait()
		c := g.client(connectA)
		_, _ = io.WriteString(c, strings.Repeat("x", 200))
		synctest.Wait()
		for i, want := range []string{"idle_timeout_seconds: 60", "bytes_per_flow: 100"} {
			if e := g.event("network.closed", i+1); !strings.Contains(e.Error, want) {
				t.Errorf("%+v, want %s", e, want)
			}
		}
	})
}

// TestClockIsMonotonic: what is measured, is measured with a clock that nobody
// sets.
func TestClockIsMonotonic(t *testing.T) {
	if s := new(Server).now().String(); !strings.Contains(s, " m=") {
		t.Errorf("%s has no monotonic reading", s)
	}
}

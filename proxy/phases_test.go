package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"egressd/event/phase"
)

// stopwatch keeps what was told of phases.
type stopwatch struct {
	mu    sync.Mutex
	times [phase.Count]int
	flow  [phase.Count]uint64 // of the last one
	wrong int                 // durations that cannot be
}

func (w *stopwatch) took(p phase.Phase, flow uint64, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times[p]++
	w.flow[p] = flow
	if d < 0 || d > time.Hour { // a start that was never set is long ago
		w.wrong++
	}
}

// heard reports how often a phase was told, and of which flow last.
func (w *stopwatch) heard(p phase.Phase) (times int, flow uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times[p], w.flow[p]
}

// A tunnel tells its dial and its first byte once each, with the number that its events
// have, whatever follows.
func TestTunnelPhases(t *testing.T) {
	w := new(stopwatch)
	g := newGate(t, "a.example:22")
	g.Took = w.took
	g.start()
	g.name("a.example", 22, serveOrigin(t, echo))
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\r\n")
	if _, err := headOf(c); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !pingPong(c) {
			t.Fatal("the tunnel carries nothing")
		}
	}
	want := uint64(g.decision(1).Flow)
	for _, p := range []phase.Phase{phase.Dial, phase.FirstByte} {
		if n, flow := w.heard(p); n != 1 || flow != want {
			t.Errorf("phase %d was told %d times, of flow %d; want once, of %d", p, n, flow, want)
		}
	}
	if n, _ := w.heard(phase.Decision); n < 3 { // the name, its addresses, the address that is dialled
		t.Errorf("%d decisions", n)
	}
	if w.wrong > 0 {
		t.Errorf("%d durations cannot be", w.wrong)
	}
}

// A connection that fails counts; one that a check forbids does not, since nothing
// was waited for.
func TestDialPhase(t *testing.T) {
	for _, tt := range []struct {
		addr   string
		reason string
		want   int
	}{
		{"10.0.0.1", "destination_ip_prohibited", 0},
		{public.String(), "connection_refused", 1},
	} {
		w := new(stopwatch)
		g := newGate(t, "a.example:22")
		g.Took = w.took
		g.start()
		g.answer("a.example", netip.MustParseAddr(tt.addr))
		closed := listenLocal(t)
		g.leads(netip.AddrPortFrom(netip.MustParseAddr(tt.addr), 22).String(), closed.Addr().String())
		_ = closed.Close()
		c := dialGate(g, g.explicitAddr)
		_, _ = io.WriteString(c, "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\r\n")
		if _, err := headOf(c); err != nil {
			t.Fatal(err)
		}
		if d := g.decision(1); d.Reason != tt.reason {
			t.Errorf("%s: %s, want %s", tt.addr, d.Reason, tt.reason)
		}
		if n, _ := w.heard(phase.Dial); n != tt.want {
			t.Errorf("%s: %d dials were told, want %d", tt.addr, n, tt.want)
		}
	}
}

// A request tells how long its answer took; a client whose TLS is opened, its handshake.
func TestRequestPhases(t *testing.T) {
	w := new(stopwatch)
	g := tlsGate(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }, nil, "GET https://origin.test/**")
	g.s.Took = w.took
	c := g.httpsClient(t)
	for range 2 { // the second over the connection of the first
		resp, err := c.Get("https://origin.test/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for p, want := range map[phase.Phase]int{phase.ClientTLS: 1, phase.Dial: 1, phase.FirstAnswer: 2, phase.FirstByte: 0} {
		if n, flow := w.heard(p); n != want || (n > 0) != (flow > 0) {
			t.Errorf("phase %d was told %d times, of flow %d; want %d", p, n, flow, want)
		}
	}
	if w.wrong > 0 {
		t.Errorf("%d durations cannot be", w.wrong)
	}
}

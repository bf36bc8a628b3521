package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/netns"
	"egressd/policy"
	"egressd/proxy"
	"egressd/proxy/ca"
)

type recorder struct {
	mu     sync.Mutex
	events []eventtest.Line
}

func (r *recorder) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtest.Of(e))
	return nil
}

func (r *recorder) last() eventtest.Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return eventtest.Line{}
	}
	return r.events[len(r.events)-1]
}

func compile(t *testing.T, text string) *policy.Current {
	t.Helper()
	doc, err := policy.ParseFile("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	c := new(policy.Current)
	c.Store(p)
	return c
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// connect asks the door ln for a tunnel and reports the status.
func connect(t *testing.T, ln net.Listener, target string) string {
	t.Helper()
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.Status
}

// serve serves d until the test ends, and reports what Serve said.
func serve(t *testing.T, g *Gate, d Doors) <-chan error {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, d) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("Serve does not return")
		}
	})
	return done
}

// The zero Config denies, and records that it did where it can.
func TestZeroConfigDenies(t *testing.T) {
	var events recorder
	for _, c := range []Config{{}, {Events: &events}} {
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ln := listen(t)
		serve(t, g, Doors{Explicit: []net.Listener{ln}})
		if got := connect(t, ln, "a.example:443"); strings.HasPrefix(got, "200") {
			t.Errorf("%+v lets through: %s", c, got)
		}
	}
	if got := events.last(); got.Decision != "blocked" || got.Reason != "no_policy" {
		t.Errorf("recorded %+v", got)
	}
}

// A gate with a policy that opens TLS makes its own authority, and only then.
func TestBundle(t *testing.T) {
	for text, want := range map[string]bool{"allow: [a.example]": false, "allow: ['GET https://a.example/**']": true} {
		g, err := New(Config{Policy: compile(t, text)})
		if err != nil || (g.Bundle() != nil) != want {
			t.Errorf("%s: bundle of %d bytes, %v", text, len(g.Bundle()), err)
		}
	}
	g, err := New(Config{Policy: compile(t, "allow: ['GET https://a.example/**']"), Interception: Interception{CA: new(ca.Authority)}})
	if err != nil || g.Bundle() != nil {
		t.Error("an authority of somebody else's is theirs to tell")
	}
}

// Another gate behind the same door judges those who are routed to it, once it
// runs.
func TestRoute(t *testing.T) {
	var frontEvents, behindEvents recorder
	behind, err := New(Config{Policy: compile(t, "deny: [a.example]"), Events: &behindEvents})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var to *Gate
	front, err := New(Config{Events: &frontEvents, Shared: Shared{Route: func(proxy.Client) *Gate {
		mu.Lock()
		defer mu.Unlock()
		return to
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	serve(t, front, Doors{Explicit: []net.Listener{ln}})
	if got := connect(t, ln, "a.example:443"); !strings.HasPrefix(got, "407") {
		t.Errorf("a client of nobody's: %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		behind.Run(ctx, func() { close(started) })
	}()
	<-started
	mu.Lock()
	to = behind
	mu.Unlock()
	if got := connect(t, ln, "a.example:443"); !strings.HasPrefix(got, "403") {
		t.Errorf("a client of the other gate: %s", got)
	}
	if got := behindEvents.last().Reason; got != "denied_by_rule" {
		t.Errorf("the other gate recorded %q", got)
	}
	stop()
	<-ended
}

// A door that fails is told, and the others go on.
func TestDoorFails(t *testing.T) {
	told, w := io.Pipe()
	g, err := New(Config{Events: new(recorder), Log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	bad, good := listen(t), listen(t)
	_ = bad.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, Doors{Explicit: []net.Listener{bad, good}}) }()
	line, _ := bufio.NewReader(told).ReadString('\n') // before it, stop could come first
	if !strings.Contains(line, "closed early") || !strings.Contains(line, "door=proxy") {
		t.Errorf("logged %q", line)
	}
	go io.Copy(io.Discard, told)
	connect(t, good, "a.example:443")
	stop()
	if err := <-done; !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "proxy door") {
		t.Errorf("got %v", err)
	}
}

// Doors that nobody comes to serve are closed.
func TestDoorsClose(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := Doors{
		Explicit: []net.Listener{listen(t)}, Transparent: []net.Listener{listen(t)}, DNSTCP: listen(t), DNSUDP: pc,
		Refusals: r, Fixed: []Fixed{{Listener: listen(t)}},
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, ln := range []net.Listener{d.Explicit[0], d.Transparent[0], d.DNSTCP, d.Fixed[0].Listener} {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v was left open", ln.Addr())
		}
	}
	if pc.Close() == nil || r.Close() == nil {
		t.Error("the packet socket or the refusals were left open")
	}
	if err := (Doors{}).Close(); err != nil {
		t.Error(err)
	}
}

// What the capture rules refused is one event each.
func TestRefused(t *testing.T) {
	var events recorder
	g, err := New(Config{Events: &events, Identity: Identity{Session: "s", Isolation: "netns"}})
	if err != nil {
		t.Fatal(err)
	}
	g.refused(netns.Refusal{Proto: "udp", Dst: netip.MustParseAddr("192.0.2.1"), Src: netip.MustParseAddr("10.0.0.1"), Port: 443})
	want := eventtest.Line{Type: "network.connected", Session: "s", Isolation: "netns"}
	want.Door, want.Decision, want.Reason = "kernel", "blocked", "protocol_not_carried"
	counted := want
	want.Proto, want.Port, want.Host, want.Addr, want.Client = "udp", 443, "192.0.2.1", "192.0.2.1", "10.0.0.1"
	if got := events.last(); !reflect.DeepEqual(got, want) {
		t.Errorf("recorded %+v", got)
	}
	g.refused(netns.Refusal{Count: 1234})
	counted.Count = 1234
	if got := events.last(); !reflect.DeepEqual(got, counted) {
		t.Errorf("recorded %+v", got)
	}
}

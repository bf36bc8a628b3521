package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// drain starts Drain and reports how it ends.
func (g *testGate) drain(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- g.Drain(ctx) }()
	return done
}

// refusedByKernel waits until nobody listens at addr any more.
func refusedByKernel(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			c.Close()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still accepts: %v", addr, err)
		}
	}
}

// silent takes everything and says nothing.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// drained waits for Drain.
func drained(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("Drain does not return")
		return nil
	}
}

// TestDrain drains a gate with every kind of connection on it.
func TestDrain(t *testing.T) {
	g := newGate(t, "a.example:22", "web.example", "slow.example")
	release := make(chan struct{})
	g.name("a.example", 22, serveOrigin(t, echo))
	g.name("web.example", 80, serveOrigin(t, httpOK))
	g.answer("slow.example", mustAddr("93.184.216.35"))
	g.leads("93.184.216.35:80", serveOrigin(t, func(c net.Conn) {
		if _, err := headOf(c); err == nil {
			select {
			case <-release:
			case <-time.After(patience):
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
		}
	}))
	g.start()

	tunnel, err := openConnect(g, "a.example", 22)
	if err != nil || !pingPong(tunnel) {
		t.Fatal(err)
	}
	captured, err := openCaptured(g, "a.example", 22)
	if err != nil || !pingPong(captured) {
		t.Fatal(err)
	}
	idle, under := dialGate(g, g.explicitAddr), dialGate(g, g.explicitAddr)
	if head := get(t, idle, "web.example"); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Fatal(head)
	}
	_, _ = io.WriteString(under, "GET http://slow.example/ HTTP/1.1\r\nHost: slow.example\r\n\r\n")
	settleUp(t, "requests under way", 3, func() int { return g.Stats().Flows })

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := g.drain(ctx)
	refusedByKernel(t, g.explicitAddr)
	refusedByKernel(t, g.captureAddr)
	if n, err := io.Copy(io.Discard, idle); n != 0 || err != nil {
		t.Errorf("the idle connection: %d bytes, %v", n, err)
	}
	if !pingPong(tunnel) || !pingPong(captured) {
		t.Error("a tunnel ended before its time")
	}
	close(release)
	resp, err := http.ReadResponse(bufio.NewReader(under), nil)
	if err != nil || resp.StatusCode != 200 || !resp.Close {
		t.Errorf("the request under way: %+v, %v", resp, err)
	}
	select {
	case err := <-done:
		t.Errorf("Drain returned %v while tunnels were open", err)
	default:
	}
	tunnel.Close()
	captured.Close()
	if err := drained(t, done); err != nil {
		t.Error(err)
	}
	// It serves no more.
	if err := g.Serve(context.Background(), listenLocal(t)); err != nil {
		t.Error(err)
	}
}

// get makes one request on a kept-alive connection and reads the answer.
func get(t *testing.T, c net.Conn, host string) (head string) {
	t.Helper()
	fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host)
	head, err := headOf(c)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := contentLengthOf(head)
	if _, err := io.CopyN(io.Discard, c, n); err != nil {
		t.Fatal(err)
	}
	return head
}

// settleUp waits until count reaches want.
func settleUp(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	for deadline := time.Now().Add(patience); count() < want; {
		if time.Now().After(deadline) {
			t.Fatalf("%d %s, want %d", count(), what, want)
		}
		time.Sleep(time.Millisecond) // polling: what happens inside tells nobody
	}
}

// TestDrainDeadline closes what has not finished in time, and says so.
func TestDrainDeadline(t *testing.T) {
	g := newGate(t, "a.example:22", "slow.example")
	g.name("a.example", 22, serveOrigin(t, echo))
	g.name("slow.example", 80, serveOrigin(t, silent))
	g.start()
	tunnel, err := openConnect(g, "a.example", 22)
	if err != nil || !pingPong(tunnel) {
		t.Fatal(err)
	}
	web := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(web, "GET http://slow.example/ HTTP/1.1\r\nHost: slow.example\r\nContent-Length: 5\r\n\r\n")
	settleUp(t, "flows", 2, func() int { return g.Stats().Flows })
	half := dialGate(g, g.explicitAddr) // a slow loris does not hold it up for longer
	_, _ = io.WriteString(half, "CONNECT a.exa")

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := drained(t, g.drain(ctx)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := tunnel.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel goes on")
	}
	for i := 1; i <= 2; i++ {
		if e := g.event("network.closed", i); e.Error != drainedLate {
			t.Errorf("%+v", e)
		}
	}
}

// TestDrainEndsServe has many Serve and Run calls, and connections of a client
// who has said nothing yet.
func TestDrainEndsServe(t *testing.T) {
	m := newManyGates(t)
	var wg sync.WaitGroup
	for range 5 {
		ln := listenLocal(t)
		wg.Go(func() {
			if err := m.front.Serve(context.Background(), ln); err != nil { // ends by Drain alone
				t.Error(err)
			}
		})
	}
	settleUp(t, "listeners", 7, m.front.servingOn)
	wg.Go(func() { m.a.Run(context.Background(), nil) })
	c := dialGate(m.front, m.front.explicitAddr)
	fmt.Fprintf(c, "CONNECT a.example:22 HTTP/1.1\r\n%s\r\n", authField(tokenA))
	if _, err := headOf(c); err != nil || !pingPong(c) {
		t.Fatal(err)
	}
	quiet := dialGate(m.front, m.front.explicitAddr)
	settleUp(t, "connections", 2, m.front.seats)

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	front := m.front.drain(ctx)
	if n, err := io.Copy(io.Discard, quiet); n != 0 || err != nil { // after drainPatience
		t.Errorf("%d bytes, %v", n, err)
	}
	if !pingPong(c) {
		t.Error("a routed tunnel ended before its time")
	}
	a := m.a.drain(ctx)
	c.Close()
	if err := drained(t, front); err != nil {
		t.Error(err)
	}
	if err := drained(t, a); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// seats counts the connections that were let in.
func (g *testGate) seats() int {
	return g.admitted.Counts().Connections
}

// TestDrainIdleHosts ends idle kept-alive connections through CONNECT and on
// captured port 80.
func TestDrainIdleHosts(t *testing.T) {
	g := newGate(t, "web.example")
	g.name("web.example", 80, serveOrigin(t, httpOK))
	g.start()
	for name, open := range map[string]func() (net.Conn, error){
		"captured": func() (net.Conn, error) {
			g.pin(mustAddr("198.18.0.7"), hostOf(t, "web.example"))
			g.capturedDst.Store(netip.MustParseAddrPort("198.18.0.7:80"))
			return net.Dial("tcp", g.captureAddr)
		},
		"CONNECT to port 80": func() (net.Conn, error) { return openConnect(g, "web.example", 80) },
	} {
		c, err := open()
		if err != nil {
			t.Fatal(name, err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n")
		if head, err := headOf(c); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
			t.Fatal(name, head, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	if err := drained(t, g.drain(ctx)); err != nil || time.Since(start) > patience/2 {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

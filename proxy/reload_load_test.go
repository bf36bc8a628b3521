package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// reloadLoad is what goes through a gate while it reloads.
type reloadLoad struct {
	g   *testGate
	ctx context.Context

	stop                   context.CancelFunc
	flows, reloads, denied atomic.Int64
}

func (l *reloadLoad) failed(what string, err error) {
	if l.ctx.Err() == nil {
		l.g.t.Errorf("%s: %v", what, err)
		l.stop()
	}
}

// enough reports whether flows and reloads met often enough.
func (l *reloadLoad) enough() bool {
	return l.flows.Load() >= 200 && l.reloads.Load() >= 200 && l.denied.Load() >= 20
}

// dial connects to the gate; nil: it cannot, which is a failure.
func (l *reloadLoad) dial() net.Conn {
	c, err := net.Dial("tcp", l.g.explicitAddr)
	if err != nil {
		l.failed("dial", err)
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// reload has two policies take turns, until enough went through.
func (l *reloadLoad) reload() {
	defer l.stop()
	for i := 0; l.ctx.Err() == nil && !l.enough(); i++ {
		if i%2 == 0 {
			l.g.setPolicy("a.example:22", "web.example", "b.example:22")
		} else {
			l.g.setPolicy("a.example:22", "web.example")
		}
		l.g.Rejudge()
		l.reloads.Add(1)
		runtime.Gosched()
	}
}

// tunnel keeps one tunnel busy.
func (l *reloadLoad) tunnel(c net.Conn) {
	for l.ctx.Err() == nil {
		if !pingPong(c) {
			l.failed("the long tunnel", io.ErrUnexpectedEOF)
		}
	}
}

// tunnels opens and closes tunnels.
func (l *reloadLoad) tunnels() {
	for l.ctx.Err() == nil {
		c := l.dial()
		if c == nil {
			return
		}
		_, _ = io.WriteString(c, connectA)
		if _, err := headOf(c); err != nil || !pingPong(c) {
			l.failed("a tunnel", err)
		}
		l.flows.Add(1)
		c.Close()
	}
}

// requests keeps one connection alive.
func (l *reloadLoad) requests() {
	c := l.dial()
	if c == nil {
		return
	}
	defer c.Close()
	br := bufio.NewReader(c)
	for l.ctx.Err() == nil {
		_, _ = io.WriteString(c, getWeb)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 {
			l.failed("a request", fmt.Errorf("%v, %w", resp, err))
			return
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			l.failed("a response", err)
		}
		l.flows.Add(1)
	}
}

// sometimes opens what every other policy denies: it may end, and never hangs.
func (l *reloadLoad) sometimes() {
	for l.ctx.Err() == nil {
		c := l.dial()
		if c == nil {
			return
		}
		_, _ = io.WriteString(c, "CONNECT b.example:22 HTTP/1.1\r\n\r\n")
		if _, err := headOf(c); err == nil {
			for pingPong(c) && l.ctx.Err() == nil {
			}
		}
		l.denied.Add(1)
		c.Close()
	}
}

// TestReloadUnderLoad hammers a gate with reloads while tunnels and requests go
// through it: what every policy allows never fails.
func TestReloadUnderLoad(t *testing.T) {
	g := newGate(t, "a.example:22", "web.example")
	g.name("a.example", 22, serveOrigin(t, echo))
	g.name("b.example", 22, serveOrigin(t, echo))
	g.answer("web.example", mustAddr("93.184.216.35"))
	g.leads("93.184.216.35:80", serveOrigin(t, httpOK))
	g.start()
	l := &reloadLoad{g: g}
	l.ctx, l.stop = context.WithTimeout(context.Background(), patience)
	defer l.stop()
	long, err := openConnect(g, "a.example", 22)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(l.reload)
	wg.Go(func() { l.tunnel(long) })
	for range 3 {
		wg.Go(l.tunnels)
		wg.Go(l.requests)
		wg.Go(l.sometimes)
	}
	wg.Wait()
	if !l.enough() && !t.Failed() {
		t.Errorf("%d flows, %d reloads, %d that ended: nothing was tried", l.flows.Load(), l.reloads.Load(), l.denied.Load())
	}
}

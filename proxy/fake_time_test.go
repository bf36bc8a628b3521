package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"egressd/policy"
)

// pipeListener accepts pipes, so that a whole gate runs in fake time.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// fakeTime is a gate in a bubble of fake time, and its listener.
type fakeTime struct {
	*testGate
	ln *pipeListener
}

// inFakeTime serves g in a bubble. Every origin answers "hello" and then takes
// everything.
func inFakeTime(t *testing.T, l policy.Limits, test func(t *testing.T, g *fakeTime)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &fakeTime{newGate(t), newPipeListener()}
		g.limit(l, "raw:a.example:22", "a.example", "web.example")
		g.answer("a.example", public)
		g.answer("web.example", public)
		var origins sync.WaitGroup
		g.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
			if err := d.ControlContext(ctx, network, address, nil); err != nil {
				return nil, err
			}
			gate, origin := net.Pipe()
			origins.Go(func() {
				if strings.HasSuffix(address, ":80") {
					httpOK(origin)
					return
				}
				_, _ = io.WriteString(origin, "hello")
				_, _ = io.Copy(io.Discard, origin)
				_ = origin.Close()
			})
			return &pipeUp{gate}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := g.Serve(ctx, g.ln); err != nil {
				t.Error(err)
			}
		})
		test(t, g)
		cancel()
		serving.Wait()
		origins.Wait()
	})
}

// pipeUp has an address, as the HTTP door wants to tell it.
type pipeUp struct{ net.Conn }

func (pipeUp) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("93.184.216.34:80"))
}

// client opens a connection, sends what it is given and collects the answer.
func (g *fakeTime) client(sent string) *pipeClient {
	ours, theirs := net.Pipe()
	g.ln.conns <- theirs
	c := &pipeClient{Conn: ours, over: make(chan struct{})}
	go c.collect()
	if sent != "" {
		_ = ours.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(ours, sent)
	}
	g.t.Cleanup(func() { _ = ours.Close() })
	synctest.Wait()
	return c
}

type pipeClient struct {
	net.Conn
	mu   sync.Mutex
	got  strings.Builder
	over chan struct{}
}

func (c *pipeClient) collect() {
	defer close(c.over)
	buf := make([]byte, 4<<10)
	for {
		n, err := c.Conn.Read(buf)
		c.mu.Lock()
		c.got.Write(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// answer is what has come so far.
func (c *pipeClient) answer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func (c *pipeClient) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

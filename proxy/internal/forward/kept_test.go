package forward

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPlainUnasked has the origin send a response before there is a request: the
// next client must not get it.
func TestPlainUnasked(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for name, extra := range map[string]struct {
		with, behind string // sent with the response, and once that has been read
	}{
		"with the response":  {with: poison},
		"some bytes with it": {with: "!"},
		"while it is kept":   {behind: poison},
	} {
		t.Run(name, func(t *testing.T) {
			read, sent := make(chan bool, 1), make(chan bool, 1)
			r := newRig(t, func(n int64, c net.Conn, br *bufio.Reader) {
				head(br)
				if n > 1 {
					_, _ = io.WriteString(c, fine)
					return
				}
				_, _ = io.WriteString(c, fine+extra.with)
				<-read
				_, _ = io.WriteString(c, extra.behind)
				sent <- true
				_, _ = io.Copy(io.Discard, br)
			})
			for i := range 2 {
				if _, body, err := r.fetch(get); body != "ok" {
					t.Errorf("request %d: %q, %v", i+1, body, err)
				}
				r.outcome()
				if i == 0 {
					read <- true
					<-sent
				}
			}
			if n := r.conns.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestPlainHEADWithContent has content behind the response to a HEAD.
func TestPlainHEADWithContent(t *testing.T) {
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		head(br)
		_, _ = io.WriteString(c, fine)
		_, _ = io.Copy(io.Discard, br)
	})
	if status, body, err := r.fetch("HEAD /a HTTP/1.1\r\nHost: origin.test\r\n\r\n"); status != 200 || body != "" || err != nil {
		t.Error(status, body, err)
	}
	r.outcome()
	if r.p.kept.count() != 0 {
		t.Error("the connection is kept")
	}
}

// TestPlainStale has the origin close a kept connection when the second request
// arrives: that one is sent again if that does no harm and nothing came back.
func TestPlainStale(t *testing.T) {
	const put = "PUT /a HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct {
		name, request, before string // before the connection is closed
		status                int
		conns                 int64
	}{
		{"GET", get, "", 200, 2},
		{"GET, answered in part", get, "HTTP/1.1 200", 502, 1},
		{"GET, answered with 1xx", get, "HTTP/1.1 103 X\r\n\r\n", 502, 1},
		{"POST", post, "", 502, 1},
		{"GET with content", strings.Replace(get, "\r\n\r\n", "\r\nContent-Length: 4\r\n\r\nbody", 1), "", 502, 1},
		{"PUT without content", put, "", 502, 1},
		{"PUT with a key", strings.Replace(put, "Host", "Idempotency-Key: x\r\nHost", 1), "", 200, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(n int64, c net.Conn, br *bufio.Reader) {
				head(br)
				_, _ = io.WriteString(c, fine)
				head(br)
				if n == 1 {
					_, _ = io.ReadFull(br, make([]byte, br.Buffered()))
					_, _ = io.WriteString(c, tt.before)
				}
			})
			if status, _, err := r.fetch(get); status != 200 {
				t.Fatal(status, err)
			}
			r.outcome()
			c, br := r.dial()
			_, _ = io.WriteString(c, tt.request)
			h := head(br)
			for strings.HasPrefix(h, "HTTP/1.1 103 ") {
				h = head(br)
			}
			if got := h[:min(len(h), 12)]; got != "HTTP/1.1 "+itoa(tt.status) {
				t.Errorf("%q, want %d", h, tt.status)
			}
			if n := r.conns.Load(); n != tt.conns {
				t.Errorf("%d connections, want %d", n, tt.conns)
			}
		})
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// TestKeptEnds has the origin close a kept connection: it is closed here, too.
func TestKeptEnds(t *testing.T) {
	end := make(chan bool)
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		head(br)
		_, _ = io.WriteString(c, fine)
		<-end
	})
	r.gate.dials = make(chan net.Conn, 1)
	if _, body, err := r.fetch(get); body != "ok" {
		t.Fatal(body, err)
	}
	r.outcome()
	c := <-r.gate.dials
	if r.p.kept.sweep(); r.p.kept.count() != 1 {
		t.Fatal("not kept")
	}
	close(end)
	quiet := silence(c)
	for limit := time.Now().Add(patience); quiet() && time.Now().Before(limit); {
		runtime.Gosched()
	}
	r.p.kept.sweep()
	if r.p.kept.count() != 0 || r.p.kept.sweeps() {
		t.Error("still kept")
	}
	if _, err := c.Write(nil); err == nil {
		t.Error("still open")
	}
}

func (k *kept) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

func (k *kept) sweeps() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sweeper != nil
}

// closed counts the connections that are closed.
type closed struct {
	net.Conn
	n *atomic.Int64
}

func (c closed) Close() error { c.n.Add(1); return nil }

// TestKeptBounds fills the room for kept connections, of one host and in all, and
// lets them grow old.
func TestKeptBounds(t *testing.T) {
	k := kept{sweeper: time.NewTimer(time.Hour)} // the test sweeps
	defer k.close()
	var n atomic.Int64
	keep := func(host string) *origin {
		o := &origin{originConn: &originConn{Conn: closed{n: &n}}, route: route{host: host}, silent: func() bool { return true }}
		k.put(o)
		return o
	}
	first := keep("a")
	for range maxIdlePerHost {
		keep("a")
	}
	if k.count() != maxIdlePerHost || n.Load() != 1 || k.idle[route{host: "a"}][0] == first {
		t.Errorf("%d kept, %d closed", k.count(), n.Load())
	}
	for i := range maxIdle {
		keep(string(rune('b' + i%16)))
	}
	if k.count() != maxIdle || n.Load() != 1+maxIdlePerHost || len(k.idle[route{host: "a"}]) != 0 {
		t.Errorf("%d kept, %d closed", k.count(), n.Load())
	}
	if k.take(route{"b", true}) != nil || k.take(route{host: "z"}) != nil {
		t.Error("a connection of another route")
	}
	o := k.take(route{host: "b"})
	if o == nil || !o.used || k.count() != maxIdle-1 {
		t.Fatal("no connection of the route")
	}
	k.mu.Lock()
	for _, list := range k.idle {
		for _, o := range list {
			o.since = o.since.Add(-idleTimeout)
		}
	}
	k.mu.Unlock()
	if k.take(route{host: "b"}) != nil {
		t.Error("an old connection")
	}
	k.sweep()
	k.put(&origin{originConn: &originConn{Conn: closed{n: &n}}})
	if k.count() != 0 || n.Load() != 1+maxIdlePerHost+maxIdle {
		t.Errorf("%d kept, %d closed", k.count(), n.Load())
	}
	keep("a")
	k.close()
	if k.count() != 0 || k.sweeps() || n.Load() != 2+maxIdlePerHost+maxIdle {
		t.Error("not closed")
	}
}

package proxy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tunnel opens one through CONNECT to a port that may carry anything.
func openTunnel(t testing.TB, serve func(net.Conn)) (*testGate, *net.TCPConn) {
	t.Helper()
	g := newGate(t, "a.example:22").start()
	g.name("a.example", 22, serveOrigin(t, serve))
	c, err := openConnect(g, "a.example", 22)
	if err != nil {
		t.Fatal(err)
	}
	return g, c.(*net.TCPConn)
}

// TestHalfClose ends one direction and goes on in the other, both ways round.
func TestHalfClose(t *testing.T) {
	t.Run("client first", func(t *testing.T) {
		_, c := openTunnel(t, func(o net.Conn) {
			got, _ := io.ReadAll(o)
			fmt.Fprintf(o, "%d bytes", len(got))
		})
		_, _ = c.Write(make([]byte, 1000))
		_ = c.CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "1000 bytes" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("origin first", func(t *testing.T) {
		got := make(chan string, 1)
		_, c := openTunnel(t, func(o net.Conn) {
			_, _ = io.WriteString(o, "bye")
			_ = o.(*net.TCPConn).CloseWrite()
			b, _ := io.ReadAll(o)
			got <- string(b)
		})
		if b, err := io.ReadAll(c); string(b) != "bye" {
			t.Errorf("%q, %v", b, err)
		}
		_, _ = io.WriteString(c, "still here")
		_ = c.CloseWrite()
		if s := <-got; s != "still here" {
			t.Errorf("origin got %q", s)
		}
	})
}

// TestServerFirst checks that a client that waits for the server's greeting
// gets it.
func TestServerFirst(t *testing.T) {
	for _, door := range clients() {
		g := newGate(t, "a.example:22").start()
		g.name("a.example", 22, serveOrigin(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n") }))
		c, err := door.open(g, "a.example", 22)
		if err != nil {
			t.Fatal(door.name, err)
		}
		if b, err := io.ReadAll(io.LimitReader(c, 11)); string(b) != "SSH-2.0-x\r\n" {
			t.Errorf("%s: %q, %v", door.name, b, err)
		}
	}
}

// TestSniffedTLS sends TLS with another name to a port that may carry
// anything: it ends with an alert, a second decision, and no byte at the origin.
func TestSniffedTLS(t *testing.T) {
	for _, door := range clients() {
		arrived := make(chan int, 1)
		g := newGate(t, "a.example:993").start()
		g.name("a.example", 993, serveOrigin(t, func(c net.Conn) {
			n, _ := c.Read(make([]byte, 1))
			arrived <- n
		}))
		c, err := door.open(g, "a.example", 993)
		if err != nil {
			t.Fatal(door.name, err)
		}
		if err := handshake(oneByte{c}, "evil.example"); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", door.name, err)
		}
		if n := <-arrived; n != 0 {
			t.Errorf("%s: the origin got bytes", door.name)
		}
		first, second, end := g.decision(1), g.decision(2), g.event("network.closed", 1)
		if first.Decision != "allowed" || second.Reason != "sni_mismatch" || second.Flow != first.Flow || !strings.Contains(end.Error, "sni_mismatch") {
			t.Errorf("%s: %+v, %+v, %+v", door.name, first, second, end)
		}
	}
}

// A tunnel is on record when its origin was dialled, at every door and port, though
// nobody sends a byte; and what ends without one has an end on record.
func TestSilentTunnelIsOnRecord(t *testing.T) {
	for _, door := range clients() {
		g := newGate(t, "a.example:22").start()
		g.name("a.example", 22, serveOrigin(t, echo))
		c, err := door.open(g, "a.example", 22)
		if err != nil {
			t.Fatal(door.name, err)
		}
		d := g.decision(1)
		if d.Decision != "allowed" || d.Addr != "93.184.216.34:22" || len(g.sink.all("network.closed")) != 0 {
			t.Errorf("%s: %+v", door.name, d)
		}
		c.Close()
		if end := g.event("network.closed", 1); end.Flow != d.Flow || end.BytesOut+end.BytesIn != 0 {
			t.Errorf("%s: %+v", door.name, end)
		}
	}
}

// What cannot be recorded is refused before the client is told to go on.
func TestUnrecordedTunnelIsRefused(t *testing.T) {
	g := newGate(t, "a.example:22").start()
	g.sink.fill()
	g.name("a.example", 22, serveOrigin(t, echo))
	if _, err := openConnect(g, "a.example", 22); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503") {
		t.Errorf("got %v", err)
	}
}

// TestReset checks that a reset arrives as a reset, both ways round.
func TestReset(t *testing.T) {
	t.Run("origin", func(t *testing.T) {
		_, c := openTunnel(t, func(o net.Conn) {
			_, _ = o.Read(make([]byte, 1))
			_ = o.(*net.TCPConn).SetLinger(0)
		})
		_, _ = io.WriteString(c, "x")
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	})
	t.Run("client", func(t *testing.T) {
		got := make(chan error, 1)
		_, c := openTunnel(t, func(o net.Conn) {
			_, _ = io.WriteString(o, "x")
			_, err := io.ReadAll(o)
			got <- err
		})
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
		_ = c.Close()
		if err := <-got; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	})
}

// readOnly hides what else a connection can do from io.Copy.
type readOnly struct{ c net.Conn }

func (r readOnly) Read(p []byte) (int, error) { return r.c.Read(p) }

// TestBulk carries enough both ways for splice to take over, with pauses and
// odd sizes, and compares every byte.
func TestBulk(t *testing.T) {
	const size = 24 << 20
	g, c := openTunnel(t, echo)
	src := rand.NewChaCha8([32]byte{1})
	want := sha256.New()
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1<<20)
		for sent := 0; sent < size; {
			n := min(size-sent, 1+rand.IntN(len(buf)))
			_, _ = src.Read(buf[:n])
			want.Write(buf[:n])
			if _, err := c.Write(buf[:n]); err != nil {
				t.Error(err)
				return
			}
			sent += n
		}
		_ = c.CloseWrite()
	})
	got := sha256.New()
	n, err := io.Copy(got, readOnly{c})
	wg.Wait()
	if n != size || err != nil || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Fatalf("%d bytes, %v; same bytes: %v", n, err, bytes.Equal(got.Sum(nil), want.Sum(nil)))
	}
	if end := g.event("network.closed", 1); end.BytesIn != size || end.BytesOut != size {
		t.Errorf("closed with %d out, %d in", end.BytesOut, end.BytesIn)
	}
}

// TestIdleTunnelsHoldNothing opens many tunnels that have carried bulk and are
// idle: no pipe stays with them, and when they are gone neither do goroutines
// or descriptors.
func TestIdleTunnelsHoldNothing(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil || lim.Cur < uint64(4*n+200) {
		n = int(lim.Cur) / 8
	}
	before, fds := runtime.NumGoroutine(), openFiles(t)
	t.Run("run", func(t *testing.T) {
		g := newGate(t, "a.example:22").start()
		g.name("a.example", 22, serveOrigin(t, echo))
		bulk := bytes.Repeat([]byte("x"), 256<<10+4096) // package relay splices from 256 KiB on
		for i := range n {
			c, err := openConnect(g, "a.example", 22)
			if err != nil {
				t.Fatal(i, err)
			}
			if i%10 == 0 {
				go func() { _, _ = c.Write(bulk) }()
				if _, err := io.ReadFull(c, make([]byte, len(bulk))); err != nil {
					t.Fatal(i, err)
				}
			} else if !pingPong(c) {
				t.Fatal(i, "no answer")
			}
		}
		// 4 descriptors a tunnel: client, gate twice, origin.
		if now := openFiles(t); now > fds+4*n+2*8+20 {
			t.Errorf("%d descriptors for %d idle tunnels", now-fds, n)
		}
	})
	settle(t, "goroutines", before+2, runtime.NumGoroutine)
	settle(t, "descriptors", fds+2, func() int { return openFiles(t) })
}

func settle(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); count() > want; {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d %s left, want %d\n%s", count(), what, want, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(5 * time.Millisecond) // polling: the kernel and the runtime tell nobody
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(d)
}

func BenchmarkConnect(b *testing.B) {
	g := newGate(b, "a.example:22").start()
	g.name("a.example", 22, serveOrigin(b, echo))
	b.ReportAllocs()
	for b.Loop() {
		c, err := net.Dial("tcp", g.explicitAddr)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.WriteString(c, "CONNECT a.example:22 HTTP/1.1\r\n\r\nping\n")
		if _, err := io.ReadFull(c, make([]byte, len(established)+5)); err != nil {
			b.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

func BenchmarkBulk(b *testing.B) {
	_, c := openTunnel(b, func(o net.Conn) { _, _ = io.Copy(io.Discard, o) })
	_ = c.SetDeadline(time.Time{})
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	_, c := openTunnel(b, echo)
	_ = c.SetDeadline(time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		if !pingPong(c) {
			b.Fatal("no answer")
		}
	}
}

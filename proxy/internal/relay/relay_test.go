package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// oneWay is a Way of a test.
type oneWay struct {
	src, dst net.Conn
	limit    int64 // Count says no from here on; 0: never
	counted  atomic.Int64
	panics   bool
	ended    chan error
}

func (w *oneWay) Src() net.Conn   { return w.src }
func (w *oneWay) Dst() net.Conn   { return w.dst }
func (w *oneWay) Ended(err error) { w.ended <- err }

func (w *oneWay) Count(n int64) bool {
	if w.panics {
		panic("count has a bug")
	}
	return w.counted.Add(n) <= w.limit || w.limit == 0
}

// kinds are pairs of connected ends: kernel sockets, and others.
func kinds(t *testing.T) map[string]func() (near, far net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return map[string]func() (net.Conn, net.Conn){
		"pipes": net.Pipe,
		"sockets": func() (net.Conn, net.Conn) {
			var d net.Dialer
			near, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			far, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return near, far
		},
	}
}

// start carries from the first connection to the second one of two pairs, and
// reports the outer ends.
func start(t *testing.T, g Engine, pair func() (net.Conn, net.Conn), w *oneWay) (in, out net.Conn) {
	in, w.src = pair()
	w.dst, out = pair()
	w.ended = make(chan error, 2)
	t.Cleanup(func() {
		for _, c := range []net.Conn{in, w.src, w.dst, out} {
			c.Close()
		}
	})
	g.Start(w)
	return in, out
}

func TestCarry(t *testing.T) {
	for name, pair := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			var g Goroutines
			var w oneWay
			in, out := start(t, &g, pair, &w)
			sent := bytes.Repeat([]byte("0123456789abcdef"), bulkBytes/8) // far enough to be spliced
			go func() {
				_, _ = in.Write(sent)
				in.Close()
			}()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(out, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("other bytes arrived: %v", err)
			}
			if err := <-w.ended; err != nil {
				t.Error(err)
			}
			if n := w.counted.Load(); n != int64(len(sent)) {
				t.Errorf("%d of %d bytes were counted", n, len(sent))
			}
			g.Trim()
		})
	}
}

// A reset is never taken for the end of the content, whether bytes are copied or
// spliced: a download that broke off would look whole.
func TestReset(t *testing.T) {
	for name, size := range map[string]int{"copied": 1000, "spliced": 4 * bulkBytes} {
		t.Run(name, func(t *testing.T) {
			var g Goroutines
			var w oneWay
			in, out := start(t, &g, kinds(t)["sockets"], &w)
			go func() { _, _ = in.Write(make([]byte, size)) }()
			if _, err := io.ReadFull(out, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if err := in.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if err := <-w.ended; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the way ended with %v", err)
			}
			g.Trim()
		})
	}
}

// TestSplicedPieces stops and breaks a way that has carried enough to be spliced.
func TestSplicedPieces(t *testing.T) {
	pair := kinds(t)["sockets"]
	piece := make([]byte, bulkBytes+pieceBytes)
	t.Run("stopped", func(t *testing.T) {
		w := oneWay{limit: int64(len(piece))}
		in, out := start(t, new(Goroutines), pair, &w)
		go func() { _, _ = in.Write(piece) }()
		if _, err := io.ReadFull(out, make([]byte, len(piece))); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(in, "one more") }()
		if err := <-w.ended; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
	t.Run("broken", func(t *testing.T) {
		var w oneWay
		var g Goroutines
		in, out := start(t, &g, pair, &w)
		go func() {
			for err := error(nil); err == nil; {
				_, err = in.Write(piece)
			}
		}()
		if _, err := io.ReadFull(out, make([]byte, 4*len(piece))); err != nil {
			t.Fatal(err)
		}
		out.Close() // with bytes unread: a reset
		if err := <-w.ended; err == nil {
			t.Error("a way whose destination was gone ended well")
		}
		g.Trim()
	})
}

// TestCountSaysNo sends nothing that was not counted in.
func TestCountSaysNo(t *testing.T) {
	for name, pair := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			w := oneWay{limit: 1}
			in, out := start(t, new(Goroutines), pair, &w)
			go func() { _, _ = io.WriteString(in, "secret") }()
			if err := <-w.ended; !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
			w.dst.Close()
			if got, _ := io.ReadAll(out); len(got) != 0 {
				t.Errorf("%q was sent on", got)
			}
		})
	}
}

func TestPanicEndsOneWay(t *testing.T) {
	w := oneWay{panics: true}
	in, _ := start(t, new(Goroutines), net.Pipe, &w)
	go func() { _, _ = io.WriteString(in, "x") }()
	var p *Panic
	if err := <-w.ended; !errors.As(err, &p) || p.Value != "count has a bug" || !bytes.Contains(p.Stack, []byte("relay_test.go")) || p.Error() != "panic: count has a bug" {
		t.Errorf("%v", err)
	}
}

func TestEndsOnce(t *testing.T) {
	var w oneWay
	in, _ := start(t, new(Goroutines), net.Pipe, &w)
	in.Close()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	if len(w.ended) != 0 {
		t.Error("a second end")
	}
}

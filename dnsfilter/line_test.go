package dnsfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// listener is an upstream that answers datagrams as the test says.
type listener struct {
	net.PacketConn
	addr netip.AddrPort
}

func newListener(t *testing.T) *listener {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	_ = pc.(*net.UDPConn).SetReadBuffer(1 << 20) // the system grants what holds 500 questions
	_ = pc.SetReadDeadline(time.Now().Add(20 * time.Second))
	return &listener{pc, pc.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// next reads one question.
func (l *listener) next(t *testing.T) (q []byte, from net.Addr) {
	t.Helper()
	buf := make([]byte, 4096)
	n, from, err := l.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n], from
}

// packedQuestion is what overUDP sends for name.
func packedQuestion(t testing.TB, name string) []byte {
	t.Helper()
	q, err := question(host(t, name), dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// idle waits until no socket is open: the last answer closes it.
func (x *lines) idle(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.open) != 0 {
		t.Errorf("%d sockets are open, and nobody waits", len(x.open))
	}
}

// Questions share sockets, each for 256 questions at most; ids are not used twice at a
// time, names are spelled differently, and answers in any order find their questions.
func TestLinesShareSockets(t *testing.T) {
	const questions = maxAsked + maxAsked/2
	up := newListener(t)
	var x lines
	var wg sync.WaitGroup
	for i := range questions {
		wg.Go(func() {
			a := x.ask(t.Context(), up.addr, packedQuestion(t, fmt.Sprintf("name%d.test", i)))
			want := fmt.Sprintf("name%d", i)
			if a.err != nil || !a.spelled || !strings.EqualFold(string(a.wire[13:13+len(want)]), want) {
				t.Errorf("%s: %+v", want, a)
			}
		})
	}
	ports, ids, cases := map[string]int{}, map[string]bool{}, map[string]bool{}
	var held [][]byte
	var from []net.Addr
	for range questions {
		q, at := up.next(t)
		ports[at.String()]++
		ids[at.String()+string(q[:2])] = true
		cases[string(q[13:17])] = true
		q[2] |= 0x80
		held, from = append(held, q), append(from, at)
	}
	for i := range held { // the last one first
		if _, err := up.WriteTo(held[len(held)-1-i], from[len(held)-1-i]); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if len(ids) != questions {
		t.Errorf("%d ids for %d questions that wait at the same time", len(ids), questions)
	}
	for port, n := range ports {
		if n > maxAsked {
			t.Errorf("%d questions from %s", n, port)
		}
	}
	if len(ports) < 2 || len(ports) > 10 {
		t.Errorf("%d sockets for %d questions", len(ports), questions)
	}
	if len(cases) < 8 { // of 16
		t.Errorf("name is spelled in %d ways", len(cases))
	}
	x.idle(t)
}

// An id that a question waits for is not given to another.
func TestLinesIDs(t *testing.T) {
	to := netip.MustParseAddrPort("192.0.2.1:53")
	l := &line{to: to, born: time.Now().Add(time.Hour), waiting: map[uint16]*waiter{}}
	l.of = &lines{open: map[netip.AddrPort]*line{to: l}}
	for id := range 1 << 16 {
		l.waiting[uint16(id)] = new(waiter)
	}
	delete(l.waiting, 4711)
	w := &waiter{packet: packedQuestion(t, "a.test")}
	if err := l.of.enlist(to, w, new(outbox)); err != nil || w.id != 4711 || l.waiting[w.id] != w || w.line != l {
		t.Errorf("id %d, %v: only 4711 is free", w.id, err)
	}
}

// A port is not kept: what comes after a pause is asked from another socket.
func TestLinesRotate(t *testing.T) {
	up := newListener(t)
	var x lines
	ports := map[string]bool{}
	for range 8 {
		done := make(chan error, 1)
		q := packedQuestion(t, "a.test")
		go func() {
			done <- x.ask(t.Context(), up.addr, q).err
		}()
		sent, from := up.next(t)
		ports[from.String()] = true
		sent[2] |= 0x80
		if _, err := up.WriteTo(sent, from); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		x.idle(t)
	}
	if len(ports) < 2 {
		t.Error("every question came from one port")
	}
}

// guess sends datagrams that answer nothing to from: one less than move its questions, or
// as many as do.
func (l *listener) guess(t *testing.T, n int, q []byte, from net.Addr) {
	t.Helper()
	for range n {
		wrong := bytes.Clone(q)
		wrong[2] |= 0x80
		wrong[len(wrong)-optBytes-1]++ // of another class
		if _, err := l.WriteTo(wrong, from); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever guesses on a port makes nothing fail: what does not answer is ignored, and after
// 256 of these the questions move to another port, with other ids and cases, twice.
func TestLinesOutliveGuessing(t *testing.T) {
	up := newListener(t)
	var moves atomic.Int64
	x := lines{guessed: func(_ netip.AddrPort, questions int) { moves.Add(int64(questions)) }}
	for _, moved := range []int{0, 1, maxMoves} {
		name := strings.Repeat("abcdefghij", 5) + ".test"
		done := make(chan reply, 1)
		moves.Store(0)
		q := packedQuestion(t, name)
		go func() { done <- x.ask(t.Context(), up.addr, q) }()
		sent, from := up.next(t)
		for range moved {
			up.guess(t, maxStray, sent, from)
			again, at := up.next(t)
			if at.String() == from.String() || bytes.Equal(again, sent) {
				t.Errorf("asked again from %v, before from %v; %x, before %x", at, from, again, sent)
			}
			sent[2] |= 0x80
			_, _ = up.WriteTo(sent, from) // too late: that port is closed
			sent, from = again, at
		}
		up.guess(t, maxStray-1, sent, from)
		sent[2] |= 0x80
		if _, err := up.WriteTo(sent, from); err != nil {
			t.Fatal(err)
		}
		if a := <-done; a.err != nil || !a.spelled || int(moves.Load()) != moved {
			t.Errorf("%d moves, want %d: %+v", moves.Load(), moved, a)
		}
		x.idle(t)
	}
}

// The third time, TCP is asked: guessing does not cost an answer.
func TestGuessingEndsInTCP(t *testing.T) {
	u := startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	pc, err := net.ListenPacket("udp", "127.0.0.2:0") // its own: answers nothing, and guesses
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	ln, err := net.Listen("tcp", pc.LocalAddr().String())
	if err != nil {
		t.Skip(err) // somebody has the port
	}
	defer ln.Close()
	go relayTo(ln, u.addr.String())
	var log syncBuffer
	at, _ := ParseUpstream(pc.LocalAddr().String())
	r := &Resolver{Upstreams: []Upstream{at}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	done := make(chan error, 1)
	go func() {
		got, err := lookup(t, r, "a.test")
		if err == nil && (len(got) != 1 || got[0] != "192.0.2.1") {
			err = fmt.Errorf("%v", got)
		}
		done <- err
	}()
	up := &listener{pc, pc.LocalAddr().(*net.UDPAddr).AddrPort()}
	_ = pc.SetReadDeadline(time.Now().Add(20 * time.Second))
	for range 1 + maxMoves {
		q, from := up.next(t)
		up.next(t) // the other family, from the same port
		up.guess(t, maxStray, q, from)
	}
	if err := <-done; err != nil || u.tcp.Load() != 2 {
		t.Errorf("%v, %d questions over TCP", err, u.tcp.Load())
	}
	if n := strings.Count(log.String(), "as if somebody guessed"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}

// relayTo copies each connection of ln to addr and back.
func relayTo(ln net.Listener, addr string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			to, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer to.Close()
			go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
			_, _ = io.Copy(c, to)
		}()
	}
}

// syncBuffer is a log that goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A caller that stops waiting closes the socket, unless others wait on it.
func TestLinesLeave(t *testing.T) {
	up := newListener(t)
	var x lines
	ctx, cancel := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() {
		left <- x.ask(ctx, up.addr, packedQuestion(t, "left.test")).err
	}()
	up.next(t)
	go func() {
		stayed <- x.ask(t.Context(), up.addr, packedQuestion(t, "stayed.test")).err
	}()
	q, from := up.next(t)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v", err)
	}
	q[2] |= 0x80
	if _, err := up.WriteTo(q, from); err != nil {
		t.Fatal(err)
	}
	if err := <-stayed; err != nil {
		t.Errorf("stayed: %v", err)
	}
	x.idle(t)
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		left <- x.ask(ctx, up.addr, packedQuestion(t, "left.test")).err
	}()
	up.next(t)
	cancel()
	<-left
	x.idle(t)
	for len(stacks("dnsfilter.(*line).read")) > 0 {
		runtime.Gosched() // on its way out; the suite's deadline is this loop's
	}
}

// An answer in another case is what a forger sends who cannot see the question: TCP has
// the last word.
func TestOtherCaseIsAskedOverTCP(t *testing.T) {
	good, forged := zone("abcdefghijklmnopqrstuvwxyz.test. 60 IN A 192.0.2.1"), zone("abcdefghijklmnopqrstuvwxyz.test. 60 IN A 203.0.113.66")
	up := startUpstream(t, func(network string, q *dns.Msg) *dns.Msg {
		if network == "tcp" {
			return good(network, q)
		}
		m := forged(network, q)
		m.Question[0].Name = strings.ToLower(m.Question[0].Name)
		return m
	})
	r := &Resolver{Upstreams: []Upstream{up.Upstream}}
	if got, err := lookup(t, r, "abcdefghijklmnopqrstuvwxyz.test"); len(got) != 1 || got[0] != "192.0.2.1" || up.tcp.Load() != 2 {
		t.Errorf("%v, %v, %d over TCP", got, err, up.tcp.Load())
	}
}

// FuzzDeliver: no datagram counts as an answer but one that repeats id and question.
func FuzzDeliver(f *testing.F) {
	q := packedQuestion(f, "a.test")
	right := bytes.Clone(q)
	right[2] |= 0x80
	f.Add(right)
	f.Add(q)
	f.Add(right[:20])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		local, remote := net.Pipe()
		defer remote.Close()
		w := &waiter{packet: q, id: uint16(q[0])<<8 | uint16(q[1]), answer: make(chan reply, 1)}
		section := w.section()
		l := &line{of: new(lines), conn: local, waiting: map[uint16]*waiter{w.id: w}}
		w.line = l
		closed := l.deliver([][]byte{in})
		right := len(in) >= headerBytes+len(section) && bytes.Equal(in[:2], q[:2]) && in[2]&0xf8 == 0x80 &&
			in[4] == 0 && in[5] == 1 && strings.EqualFold(string(in[headerBytes:headerBytes+len(section)]), string(section))
		if closed != right || (len(w.answer) == 1) != right {
			t.Fatalf("%x: closed %v, %d answers", in, closed, len(w.answer))
		}
		if !right {
			_ = local.Close()
		}
	})
}

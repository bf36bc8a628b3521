package dnsfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
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
			reply, spelled, err := x.ask(t.Context(), up.addr, packedQuestion(t, fmt.Sprintf("name%d.test", i)))
			want := fmt.Sprintf("name%d", i)
			if err != nil || !spelled || !strings.EqualFold(string(reply[13:13+len(want)]), want) {
				t.Errorf("%s: %q, %v, %v", want, reply, spelled, err)
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
	l := &line{to: to, born: time.Now(), waiting: map[uint16]*waiter{}}
	l.of = &lines{open: map[netip.AddrPort]*line{to: l}}
	for id := range 1 << 16 {
		l.waiting[uint16(id)] = new(waiter)
	}
	delete(l.waiting, 4711)
	w := new(waiter)
	if _, id, err := l.of.enlist(t.Context(), to, w); err != nil || id != 4711 || l.waiting[id] != w {
		t.Errorf("id %d, %v: only 4711 is free", id, err)
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
			_, _, err := x.ask(t.Context(), up.addr, q)
			done <- err
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

// Whoever guesses ids on a port makes the questions on it fail, and is not believed later.
func TestLinesEndGuessing(t *testing.T) {
	up := newListener(t)
	var x lines
	errs := make(chan error, 2)
	for i := range 2 {
		q := packedQuestion(t, fmt.Sprintf("n%d.test", i))
		go func() {
			_, _, err := x.ask(t.Context(), up.addr, q)
			errs <- err
		}()
	}
	q, from := up.next(t)
	other, _ := up.next(t)
	for i := range maxStray {
		guess := bytes.Clone(q)
		guess[2] |= 0x80
		for guess[0], guess[1] = byte(i>>8), byte(i); bytes.Equal(guess[:2], q[:2]) || bytes.Equal(guess[:2], other[:2]); {
			guess[0]++
		}
		if _, err := up.WriteTo(guess, from); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := <-errs; !errors.Is(err, errMismatch) {
			t.Errorf("after %d guesses: %v", maxStray, err)
		}
	}
	x.idle(t)
}

// A caller that stops waiting closes the socket, unless others wait on it.
func TestLinesLeave(t *testing.T) {
	up := newListener(t)
	var x lines
	ctx, cancel := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := x.ask(ctx, up.addr, packedQuestion(t, "left.test"))
		left <- err
	}()
	up.next(t)
	go func() {
		_, _, err := x.ask(t.Context(), up.addr, packedQuestion(t, "stayed.test"))
		stayed <- err
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
		_, _, err := x.ask(ctx, up.addr, packedQuestion(t, "left.test"))
		left <- err
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
	reply := bytes.Clone(q)
	reply[2] |= 0x80
	f.Add(reply)
	f.Add(q)
	f.Add(reply[:20])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		local, remote := net.Pipe()
		defer remote.Close()
		section := q[headerBytes : headerBytes+questionBytes(q[headerBytes:])]
		w := &waiter{question: section, answer: make(chan answer, 1)}
		l := &line{of: new(lines), conn: local, waiting: map[uint16]*waiter{uint16(q[0])<<8 | uint16(q[1]): w}}
		closed := l.deliver(in)
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

package dnsfilter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Bounds of one UDP socket to an upstream.
const (
	maxAsked = 256         // questions in its life
	maxAge   = time.Second // since the first, after which it takes no more
)

// lines put questions to upstreams over UDP sockets that questions share. A socket ends
// with the last question that waits on it, so nothing outlives the questions. The zero
// lines are ready. Safe for concurrent use.
//
// Threat: an attacker off the path sends forged answers -> each socket is connected (the
// kernel drops other sources) and its port is random; it takes 256 questions, for one
// second, and then comes another. The id of a question is random, and so is the case of
// every letter of its name ("0x20"); an answer counts only if it repeats the question
// byte for byte. After 256 answers that do not, all that wait on the socket fail: nobody
// guesses on. Left over: an attacker on the path to a plain upstream can answer anything;
// tls:// stops that, and every address is judged anyway. Whoever finds the port makes up
// to 256 questions fail instead of one.
type lines struct {
	mu   sync.Mutex
	open map[netip.AddrPort]*line // the one that takes questions
}

// line is one socket. lines.mu guards asked, strays and waiting.
type line struct {
	of      *lines
	to      netip.AddrPort
	conn    net.Conn
	born    time.Time
	asked   int
	strays  int                // datagrams that answered nothing
	waiting map[uint16]*waiter // by id
	done    chan struct{}      // closed when nobody reads any more
}

// waiter is a question on its way.
type waiter struct {
	question []byte      // its section, as sent
	answer   chan answer // gets one
}

type answer struct {
	wire []byte
	err  error
}

// ask puts q, which it changes, to the upstream at to. The reply repeats the question but
// perhaps for the case of its letters: then spelled is false, and it proves less.
func (x *lines) ask(ctx context.Context, to netip.AddrPort, q []byte) (reply []byte, spelled bool, err error) {
	question := q[headerBytes : headerBytes+questionBytes(q[headerBytes:])]
	if err := mixCase(question); err != nil {
		return nil, false, err
	}
	w := &waiter{question: question, answer: make(chan answer, 1)}
	l, id, err := x.enlist(ctx, to, w)
	if err != nil {
		return nil, false, err
	}
	binary.BigEndian.PutUint16(q, id)
	if _, err := l.conn.Write(q); err != nil {
		l.fail(err)
	}
	select {
	case a := <-w.answer:
		if a.err != nil {
			return nil, false, a.err
		}
		return a.wire, bytes.Equal(a.wire[headerBytes:headerBytes+len(question)], question), nil
	case <-ctx.Done():
		l.leave(id, w)
		return nil, false, ctx.Err()
	}
}

// questionBytes is the size of the question that b begins with, which is ours.
func questionBytes(b []byte) int { return bytes.IndexByte(b, 0) + 5 }

// mixCase gives the letters of a question's name a random case each.
func mixCase(question []byte) error {
	var random [(maxName + 7) / 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	for i, c := range question[:len(question)-4] {
		if c >= 'a' && c <= 'z' && random[i/8]>>(i%8)&1 == 1 { // the length of a label is below 'A'
			question[i] = c - ('a' - 'A')
		}
	}
	return nil
}

// enlist finds a socket for w, and an id that nobody waits for.
func (x *lines) enlist(ctx context.Context, to netip.AddrPort, w *waiter) (*line, uint16, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, now := x.open[to], time.Now()
	if l == nil || l.asked >= maxAsked || now.Sub(l.born) >= maxAge {
		conn, err := new(net.Dialer).DialContext(ctx, "udp", to.String())
		if err != nil {
			return nil, 0, err
		}
		if err := conn.SetDeadline(now.Add(maxAge + lookupTimeout)); err != nil {
			_ = conn.Close()
			return nil, 0, err
		}
		if u, ok := conn.(*net.UDPConn); ok {
			_ = u.SetReadBuffer(maxAsked * maxReplyBytes) // as much of it as the system grants
		}
		l = &line{of: x, to: to, conn: conn, born: now, waiting: make(map[uint16]*waiter), done: make(chan struct{})}
		if x.open == nil {
			x.open = make(map[netip.AddrPort]*line)
		}
		x.open[to] = l
		go l.read()
	}
	for {
		var b [2]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, 0, err
		}
		id := binary.BigEndian.Uint16(b[:])
		if l.waiting[id] == nil {
			l.waiting[id] = w
			l.asked++
			return l, id, nil
		}
	}
}

// read hands answers to those that wait for them, until nobody does.
func (l *line) read() {
	defer close(l.done)
	defer func() {
		if p := recover(); p != nil {
			l.fail(fmt.Errorf("%w: %v", errBug, p))
		}
	}()
	buf := make([]byte, maxReplyBytes)
	for {
		n, err := l.conn.Read(buf)
		if err != nil {
			l.fail(err)
			return
		}
		if l.deliver(buf[:n]) {
			return
		}
	}
}

// deliver takes one datagram, and reports whether the socket is closed after it.
func (l *line) deliver(b []byte) (closed bool) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if len(b) >= headerBytes {
		id := binary.BigEndian.Uint16(b)
		if w := l.waiting[id]; w != nil && w.answeredBy(b) {
			delete(l.waiting, id)
			w.answer <- answer{wire: bytes.Clone(b)}
			return l.closeIfIdle()
		}
	}
	if l.strays++; l.strays >= maxStray {
		l.failLocked(errMismatch)
		return true
	}
	return false
}

// answeredBy reports whether b, of the right id, answers w's question: in whatever case.
func (w *waiter) answeredBy(b []byte) bool {
	const qr, opcode = 0x80, 0x78
	if b[2]&qr == 0 || b[2]&opcode != 0 || binary.BigEndian.Uint16(b[4:]) != 1 || len(b) < headerBytes+len(w.question) {
		return false
	}
	name := len(w.question) - 4
	asked := b[headerBytes : headerBytes+len(w.question)]
	return bytes.EqualFold(asked[:name], w.question[:name]) && bytes.Equal(asked[name:], w.question[name:])
}

// leave gives up waiting. Whoever leaves last waits until nobody reads.
func (l *line) leave(id uint16, w *waiter) {
	l.of.mu.Lock()
	if l.waiting[id] == w { // not answered meanwhile
		delete(l.waiting, id)
	}
	closed := l.closeIfIdle()
	l.of.mu.Unlock()
	if closed {
		<-l.done
	}
}

// fail ends the socket, and the questions on it with err.
func (l *line) fail(err error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.failLocked(err)
}

func (l *line) failLocked(err error) {
	for _, w := range l.waiting {
		w.answer <- answer{err: err}
	}
	clear(l.waiting)
	l.closeIfIdle()
}

// closeIfIdle closes the socket if nobody waits. lines.mu is held.
func (l *line) closeIfIdle() bool {
	if len(l.waiting) > 0 {
		return false
	}
	if l.of.open[l.to] == l {
		delete(l.of.open, l.to)
	}
	_ = l.conn.Close() // a second time is harmless
	return true
}

// overUDP asks once over UDP. whole is false when the answer was cut, or repeats the
// question in another case, which may be an upstream's habit or a forger's guess: then
// it is not used.
func (r *Resolver) overUDP(ctx context.Context, u Upstream, q *dns.Msg) (m *dns.Msg, whole bool, err error) {
	wire, err := q.Pack()
	if err != nil {
		return nil, false, err
	}
	reply, spelled, err := r.lines.ask(ctx, u.addr, wire)
	if err != nil {
		return nil, false, err
	}
	m = new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		return nil, false, err
	}
	m.Id = q.Id
	if !answers(m, q) {
		return nil, false, errMismatch
	}
	return m, spelled && !m.Truncated, nil
}

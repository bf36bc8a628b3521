package dnsfilter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"egressd/internal/linux/mmsg"
)

// Bounds of one UDP socket to an upstream, and of one question.
const (
	maxAsked = 256         // questions in a socket's life
	maxAge   = time.Second // since a socket's first question, after which it takes no more
	maxStray = 256         // datagrams that answer nothing, after which its questions move to another
	maxMoves = 2           // of one question, which is then asked over TCP
)

var (
	errMismatch = errors.New("answered another question")
	errGuessed  = errors.New("somebody guesses at answers over UDP")
)

// lines put questions to upstreams over UDP sockets that questions share. A socket ends
// with the last question that waits on it, so nothing outlives the questions. The zero
// lines are ready for ask. Safe for concurrent use.
//
// Threat: an attacker off the path sends forged answers -> each socket is connected (the
// kernel drops other sources) and its port is random; it takes 256 questions, for one
// second, and then comes another. The id of a question is random, and so is the case of
// every letter of its name ("0x20"); an answer counts only if it repeats the question
// byte for byte.
// Threat: an attacker has found the port and guesses on, or sends garbage so that
// questions fail -> what answers nothing is counted and changes nothing; after 256 such
// datagrams the questions move to a new socket, with new ids and cases, and the third
// time to TCP. Left over: an attacker on the path to a plain upstream can answer anything;
// tls:// stops that, and every address is judged anyway. An ICMP error that is forged for
// the port costs the questions on it one of their tries.
type lines struct {
	// hear takes the replies to questions of calls, several at once. Their bytes are lent.
	hear func([]reply)
	// guessed is told of every move, and how many questions moved. Nil: nobody is.
	guessed func(to netip.AddrPort, questions int)

	boxes mmsg.Boxes
	mu    sync.Mutex
	open  map[netip.AddrPort]*line // the one that takes questions
}

// line is one socket. lines.mu guards asked, strays and waiting.
type line struct {
	of      *lines
	to      netip.AddrPort
	conn    net.Conn
	many    *mmsg.Conn // conn, many packets at a time; nil where the system cannot
	born    time.Time
	asked   int
	strays  int                // datagrams that answered nothing
	waiting map[uint16]*waiter // by id
	done    chan struct{}      // closed when nobody reads any more
}

// waiter is a question on its way. lines.mu guards its fields once it was enlisted.
type waiter struct {
	packet []byte // as sent; not written to any more
	line   *line  // where it waits; nil: it does not
	id     uint16
	moves  int

	answer chan reply // gets one; nil: lines.hear is told
	call   *call      // then whose it is
	family int
}

// section is the question in w's packet.
func (w *waiter) section() []byte {
	return w.packet[headerBytes : headerBytes+questionBytes(w.packet[headerBytes:])]
}

// reply is what a question brought: wire or err.
type reply struct {
	to   *waiter
	wire []byte
	// spelled is false if the reply repeats the question in another case, which may be
	// an upstream's habit or a forger's guess: then it proves less.
	spelled bool
	err     error
}

// ask puts q, a packet, to the upstream at to, and waits.
func (x *lines) ask(ctx context.Context, to netip.AddrPort, q []byte) reply {
	w := &waiter{packet: q, answer: make(chan reply, 1)}
	var out outbox
	x.mu.Lock()
	err := x.enlist(to, w, &out)
	x.mu.Unlock()
	if err != nil {
		return reply{err: err}
	}
	out.flush()
	select {
	case a := <-w.answer:
		return a
	case <-ctx.Done():
		x.mu.Lock()
		closed := w.leave()
		x.mu.Unlock()
		if closed != nil {
			<-closed.done
		}
		return reply{err: ctx.Err()}
	}
}

// questionBytes is the size of the question that b begins with, which is ours.
func questionBytes(b []byte) int { return bytes.IndexByte(b, 0) + 5 }

// mixCase gives the letters of a question's name a random case each.
func mixCase(question, random []byte) {
	for i, c := range question[:len(question)-4] {
		if c|0x20 >= 'a' && c|0x20 <= 'z' { // the length of a label is below 'A'
			question[i] = c&^0x20 | random[i/8]>>(i%8)&1<<5
		}
	}
}

// enlist finds a socket for w, gives it an id that nobody waits for and a random case,
// and puts it into out, to be sent. x.mu is held.
func (x *lines) enlist(to netip.AddrPort, w *waiter, out *outbox) error {
	l, now := x.open[to], time.Now()
	if l == nil || l.asked >= maxAsked || now.Sub(l.born) >= maxAge {
		var err error
		if l, err = x.dial(to, now); err != nil {
			return err
		}
	}
	var random [2 + (maxName+7)/8]byte
	section := w.section()
	_, _ = rand.Read(random[:2+(len(section)+7)/8]) // never fails
	mixCase(section, random[2:])
	w.id = binary.BigEndian.Uint16(random[:])
	for l.waiting[w.id] != nil {
		_, _ = rand.Read(random[:2])
		w.id = binary.BigEndian.Uint16(random[:])
	}
	binary.BigEndian.PutUint16(w.packet, w.id)
	w.line, l.waiting[w.id] = l, w
	l.asked++
	out.add(l, w.packet)
	return nil
}

// dial makes the socket that takes questions from now on.
func (x *lines) dial(to netip.AddrPort, now time.Time) (*line, error) {
	conn, err := new(net.Dialer).DialContext(context.Background(), "udp", to.String()) // waits for nothing
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(now.Add(maxAge + lookupTimeout)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	l := &line{of: x, to: to, conn: conn, born: now, waiting: make(map[uint16]*waiter), done: make(chan struct{})}
	if u, ok := conn.(*net.UDPConn); ok {
		_ = u.SetReadBuffer(maxAsked * maxReplyBytes) // as much of it as the system grants
		if many, err := mmsg.Connected(u); err == nil {
			l.many = many
		}
	}
	if x.open == nil {
		x.open = make(map[netip.AddrPort]*line)
	}
	x.open[to] = l
	go l.read()
	return l, nil
}

// read hands answers to those that wait for them, until nobody does.
func (l *line) read() {
	defer close(l.done)
	defer func() {
		if p := recover(); p != nil {
			l.fail(fmt.Errorf("%w: %v", errBug, p))
		}
	}()
	receive := l.readMany
	if l.many == nil {
		receive = l.readOne
	}
	for {
		closed, err := receive()
		if err != nil {
			l.fail(err)
			return
		}
		if closed {
			return
		}
	}
}

// readMany delivers the datagrams that have come.
func (l *line) readMany() (closed bool, err error) {
	box, err := l.many.Read(&l.of.boxes)
	if err != nil {
		return false, err
	}
	defer l.of.boxes.Put(box)
	var room [mmsg.Most][]byte
	datagrams := room[:box.Len()]
	for i := range datagrams {
		datagrams[i] = box.Packet(i)
	}
	return l.deliver(datagrams), nil
}

// readOne delivers one datagram.
func (l *line) readOne() (closed bool, err error) {
	buf := make([]byte, maxReplyBytes)
	n, err := l.conn.Read(buf)
	if err != nil {
		return false, err
	}
	return l.deliver([][]byte{buf[:n]}), nil
}

// deliver takes datagrams, and reports whether the socket is closed after them.
func (l *line) deliver(datagrams [][]byte) (closed bool) {
	var room [mmsg.Most]reply
	replies := room[:0]
	var out outbox
	l.of.mu.Lock()
	for _, b := range datagrams {
		w := l.asker(b)
		if w == nil {
			l.strays++
			continue
		}
		section := w.section()
		replies = append(replies, reply{to: w, wire: b, spelled: bytes.Equal(b[headerBytes:headerBytes+len(section)], section)})
		delete(l.waiting, w.id)
		w.line = nil
	}
	moved := 0
	if l.strays >= maxStray {
		moved = len(l.waiting)
		replies, closed = l.move(replies, &out), true
	} else if len(replies) > 0 {
		closed = l.closeIfIdle()
	}
	l.of.mu.Unlock()
	if l.of.guessed != nil && moved > 0 {
		l.of.guessed(l.to, moved) // before an answer can come: whoever has it finds the count
	}
	out.flush()
	l.of.pass(replies)
	return closed
}

// asker is the waiter that b answers; nil: nobody.
func (l *line) asker(b []byte) *waiter {
	if len(b) < headerBytes {
		return nil
	}
	if w := l.waiting[binary.BigEndian.Uint16(b)]; w != nil && w.answeredBy(b) {
		return w
	}
	return nil
}

// answeredBy reports whether b, of the right id, answers w's question: in whatever case.
func (w *waiter) answeredBy(b []byte) bool {
	const qr, opcode = 0x80, 0x78
	section := w.section()
	if b[2]&qr == 0 || b[2]&opcode != 0 || binary.BigEndian.Uint16(b[4:]) != 1 || len(b) < headerBytes+len(section) {
		return false
	}
	name := len(section) - 4
	asked := b[headerBytes : headerBytes+len(section)]
	return bytes.EqualFold(asked[:name], section[:name]) && bytes.Equal(asked[name:], section[name:])
}

// pass hands replies on, outside of locks.
func (x *lines) pass(replies []reply) {
	calls := replies[:0]
	for _, a := range replies {
		if a.to.answer == nil {
			calls = append(calls, a)
			continue
		}
		a.wire = bytes.Clone(a.wire)
		a.to.answer <- a
	}
	if len(calls) > 0 {
		x.hear(calls)
	}
}

// move closes the socket and asks what waits on it from another, through out; it appends
// what cannot be asked any more to replies. lines.mu is held.
func (l *line) move(replies []reply, out *outbox) []reply {
	waiting := l.waiting
	l.waiting = nil
	l.closeIfIdle()
	for _, w := range waiting {
		err := errGuessed
		if w.line = nil; w.moves < maxMoves {
			w.moves++
			w.packet = bytes.Clone(w.packet) // the old one may be on its way
			err = l.of.enlist(l.to, w, out)
		}
		if err != nil {
			replies = append(replies, reply{to: w, err: err})
		}
	}
	return replies
}

// leave ends w's wait. It reports the socket that it closed, nil if none: a caller that
// may block waits until nothing reads from it. lines.mu is held.
func (w *waiter) leave() (closed *line) {
	l := w.line
	if l == nil { // answered meanwhile
		return nil
	}
	w.line = nil
	delete(l.waiting, w.id)
	if l.closeIfIdle() {
		return l
	}
	return nil
}

// fail ends the socket, and the questions on it with err.
func (l *line) fail(err error) {
	l.of.mu.Lock()
	var replies []reply
	for _, w := range l.waiting {
		w.line = nil
		replies = append(replies, reply{to: w, err: err})
	}
	l.waiting = nil
	l.closeIfIdle()
	l.of.mu.Unlock()
	l.of.pass(replies)
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

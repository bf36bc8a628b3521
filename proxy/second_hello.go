package proxy

import (
	"io"
	"sync"

	"egressd/policy"
	"egressd/proxy/internal/wire"
)

// again is what the origin's first bytes say: whether it asks the client for a
// second ClientHello (RFC 8446 section 4.1.4).
type again struct {
	once  sync.Once
	known chan struct{} // closed once asked is set
	asked bool
}

func newAgain() *again { return &again{known: make(chan struct{})} }

func (y *again) set(asked bool) {
	y.once.Do(func() {
		y.asked = asked
		close(y.known)
	})
}

// noSecond reports whether it is known that no second hello was asked for.
func (y *again) noSecond() bool {
	select {
	case <-y.known:
		return !y.asked
	default:
		return false
	}
}

// originAnswers leads the origin's direction past its first bytes, and then
// hands it to the relay engine.
func (t *tunnel) originAnswers(y *again) {
	if t.answersSeen(y) {
		t.f.s.engine.Start(&t.toClient)
		return
	}
	t.ends()
}

// answersSeen is answers for a goroutine of its own.
func (t *tunnel) answersSeen(y *again) bool {
	defer t.f.c.survive(t.abort)
	return t.answers(y)
}

// answers carries the origin's bytes until it is known whether they ask for a
// second hello. False: the flow was stopped.
func (t *tunnel) answers(y *again) bool {
	defer y.set(false) // the client's direction goes on, if only to fail
	seen := make([]byte, 0, wire.RetryBytes)
	for {
		piece := seen[len(seen):cap(seen)]
		n, err := t.up.Read(piece)
		if n > 0 {
			seen = seen[:len(seen)+n]
			st := wire.Retry(seen)
			if st != wire.More {
				y.set(st == wire.Done) // before the client can react
			}
			if !t.toClient.send(piece[:n]) {
				return false
			}
			if st != wire.More {
				return true
			}
		}
		if err != nil {
			return t.ended(err)
		}
	}
}

// secondHello sends the judged hello and watches the client until the origin
// has answered. False: the flow was stopped.
//
// Threat: a client names the judged host in its first ClientHello and another
// one in the second, which it sends in the clear after a HelloRetryRequest (it
// can always provoke one by offering no key share); OpenSSL asks its
// certificate callback again and serves the second name -> the second hello is
// held until it was judged like the first. Left over: a TLS 1.2 renegotiation,
// which is encrypted and which front ends have switched off.
func (t *tunnel) secondHello() bool {
	in := t.f.in
	if !t.sendHeld(t.f.helloLen) {
		return false
	}
	for rest := 0; ; {
		if t.again.noSecond() {
			return true
		}
		if len(in.Held()) > 0 && rest > 0 { // of a record that says nothing about names
			n := min(rest, len(in.Held()))
			rest -= n
			if !t.sendHeld(n) {
				return false
			}
			continue
		}
		n, handshake := wire.RecordLen(in.Held())
		switch {
		case n > 0 && handshake:
			<-t.again.known // ends with the origin, whatever it does
			if t.again.noSecond() {
				return true
			}
			return t.firstBytes()
		case n > 0: // early data, change_cipher_spec, alert
			rest = n
		default:
			if err := in.More(t.f.s.bounds().helloBytes); err != nil {
				return t.ended(err)
			}
		}
	}
}

// ended deals with a side that ended within the handshake: the end of a stream is
// left to the relay engine; a failure, which the engine might not see, is a reset.
// False: the flow was stopped.
func (t *tunnel) ended(err error) bool {
	if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		return true
	}
	t.abort()
	return false
}

// watchesRetry reports whether the origin may ask for a second hello that
// matters: if the first one is judged.
func (t *tunnel) watchesRetry() bool {
	return t.sniff || t.f.req.Wire == policy.WireTLS
}

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

// settled reports whether it is known that no second hello was asked for.
func (y *again) settled() bool {
	select {
	case <-y.known:
		return !y.asked
	default:
		return false
	}
}

// originAnswers leads the origin's direction past its first bytes, and then
// hands it to the relay engine.
func (r *relayed) originAnswers(y *again) {
	if r.answersSeen(y) {
		r.f.s.engine.Start(&r.toClient)
		return
	}
	r.ends()
}

// answersSeen is answers for a goroutine of its own.
func (r *relayed) answersSeen(y *again) bool {
	defer r.f.s.survive(r.f.ctx, r.abort)
	return r.answers(y)
}

// answers carries the origin's bytes until it is known whether they ask for a
// second hello. False: the flow was stopped.
func (r *relayed) answers(y *again) bool {
	defer y.set(false) // whoever waits goes on, if only to fail
	seen := make([]byte, 0, wire.RetryBytes)
	for {
		piece := seen[len(seen):cap(seen)]
		n, err := r.up.Read(piece)
		if n > 0 {
			seen = seen[:len(seen)+n]
			st := wire.Retry(seen)
			if st != wire.More {
				y.set(st == wire.Done) // before the client can react
			}
			if !r.toClient.send(piece[:n]) {
				return false
			}
			if st != wire.More {
				return true
			}
		}
		if err != nil {
			return r.ended(err)
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
func (r *relayed) secondHello() bool {
	c := r.f.c
	if !r.sendHeld(r.f.helloLen) {
		return false
	}
	for rest := 0; ; {
		if r.again.settled() {
			return true
		}
		if len(c.held()) > 0 && rest > 0 { // of a record that says nothing about names
			n := min(rest, len(c.held()))
			rest -= n
			if !r.sendHeld(n) {
				return false
			}
			continue
		}
		n, handshake := wire.RecordLen(c.held())
		switch {
		case n > 0 && handshake:
			<-r.again.known // ends with the origin, whatever it does
			if r.again.settled() {
				return true
			}
			return r.firstBytes()
		case n > 0: // early data, change_cipher_spec, alert
			rest = n
		default:
			if err := c.more(r.f.s.bounds().helloBytes); err != nil {
				return r.ended(err)
			}
		}
	}
}

// ended is what becomes of a flow when one side ended within the handshake: an
// end is left to the pump, a failure, which the pump might not see, is a reset.
func (r *relayed) ended(err error) bool {
	if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		return true
	}
	r.abort()
	return false
}

// watchesRetry reports whether the origin may ask for a second hello that
// matters: where the first one is judged.
func (r *relayed) watchesRetry() bool {
	return r.sniff || r.f.req.Wire == policy.WireTLS
}

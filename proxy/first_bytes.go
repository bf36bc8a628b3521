package proxy

import (
	"errors"
	"io"
	"os"
	"time"

	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/wire"
)

// firstBytes judges the client's first bytes on a port that may carry anything:
// if they are TLS, their SNI must match. It holds nothing back that cannot
// become a ClientHello any more. False: the flow was stopped.
func (t *tunnel) firstBytes() bool {
	f := t.f
	var scan wire.HelloScanner
	for timed := false; ; {
		if held := f.in.Held(); len(held) > 0 {
			h, st := scan.Scan(held)
			switch st {
			case wire.Other:
				_ = f.in.SetReadDeadline(time.Time{})
				return true
			case wire.Done, wire.Bad:
				_ = f.in.SetReadDeadline(time.Time{})
				return t.judgeHello(h, st)
			}
			if !timed { // once: bytes that drip in do not extend it
				timed = true
				_ = f.in.SetReadDeadline(time.Now().Add(f.sniffTimeout(held)))
			}
		}
		if err := f.in.More(f.s.bounds().helloBytes); err != nil {
			return t.sniffEnd(err)
		}
	}
}

// tlsHandshake is the first byte of every ClientHello but SSLv2's.
const tlsHandshake = 22

// sniffTimeout is how long to wait for the rest of first bytes that may become
// a ClientHello. What may only become an SSLv2 one is not held for long.
func (f *flow) sniffTimeout(held []byte) time.Duration {
	if held[0] == tlsHandshake {
		return f.s.bounds().helloTimeout
	}
	return time.Second
}

// sniffEnd decides about a client that stopped before its first bytes were
// understood.
func (t *tunnel) sniffEnd(err error) bool {
	f := t.f
	switch {
	case len(f.in.Held()) == 0 && !errors.Is(err, io.EOF):
		t.abort()
		return false
	case len(f.in.Held()) == 0 && errors.Is(err, io.EOF):
		return true // it never spoke: its half-close is passed on
	case f.in.Held()[0] != tlsHandshake && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF)):
		_ = f.in.SetReadDeadline(time.Time{})
		return true
	case errors.Is(err, peek.ErrTooLong):
		return t.judgeHello(wire.Hello{}, wire.Bad)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
		return t.judgeHello(wire.Hello{}, wire.Bad)
	}
	t.abort()
	return false
}

// judgeHello judges the ClientHello of a flow that has its origin already.
func (t *tunnel) judgeHello(h wire.Hello, st wire.State) bool {
	f := t.f
	f.hello(h, st)
	d := f.s.judge(f.ctx, f.c, f.req)
	if d.Allowed() {
		return true
	}
	// The flow is on record as allowed; that it ends here is a second decision.
	if t.rec.Deny(f.s.stamp(f.denial(d, ""))) {
		why := "denied by its ClientHello: " + d.Reason.String()
		t.ending.why.CompareAndSwap(nil, &why)
	}
	t.ending.aborted.Do(func() { socket.Reset(t.up) })
	f.alert()
	return false
}

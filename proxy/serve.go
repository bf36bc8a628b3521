package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"egressd/proxy/internal/drops"

	"egressd/internal/accept"
	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/stack"
)

// Implementation constants: what a client may take its time for. The times for
// heads and hellos are limits of the policy.
const (
	writeTimeout = 15 * time.Second // to take an answer of ours

	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
	acceptPatience   = 50 * time.Millisecond // backoff from which on clients are refused rather than left waiting
)

// Serve runs the explicit doors (CONNECT, absolute-form HTTP, SOCKS4, 4a and 5)
// on ln until ctx ends, s drains or ln fails. It closes ln, and returns only
// after every goroutine it started has exited.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, ln, explicit{})
}

// ServeTransparent is Serve for captured TCP: the destination is the
// connection's original one (SO_ORIGINAL_DST, else its local address).
func (s *Server) ServeTransparent(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, ln, captured{own: socket.AddrPort(ln.Addr())})
}

// ServeFixed is Serve for a listener that stands for one destination.
func (s *Server) ServeFixed(ctx context.Context, ln net.Listener, h policy.Host, port uint16) error {
	return s.serve(ctx, ln, fixed{h, port})
}

// listener is one Serve call.
type listener struct {
	s    *Server
	ln   net.Listener
	door door // that all its connections come through

	wg       sync.WaitGroup // one per connection, and the sweeper
	conns    admission.Set[*conn]
	accepted chan struct{} // closed when nothing more is accepted
}

func (s *Server) serve(ctx context.Context, ln net.Listener, d door) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &listener{s: s, ln: ln, door: d, accepted: make(chan struct{})}
	if !s.begin(l) {
		_ = l.ln.Close() // what drained s has closed the others
		return nil
	}
	defer s.end(l)
	if b := s.bounds(); b.Short != "" && s.short.CompareAndSwap(false, true) {
		s.log().Info(b.Short+" leaves room for fewer connections than the policy", "connections", b.Connections, "of_one_client", b.PerClient)
	}
	if own := socket.AddrPort(l.ln.Addr()); socket.Reachable(l.ln) {
		s.serving.Add(own)
		defer s.serving.Remove(own)
	}
	l.conns.Open()
	stop := context.AfterFunc(ctx, func() { _ = l.ln.Close() }) // ends accept
	l.wg.Go(func() { s.sweeper(ctx) })
	err := l.accept(ctx)
	close(l.accepted)
	stop()
	_ = l.ln.Close() // closed twice when ctx ended: no harm
	if err == nil && ctx.Err() == nil {
		l.awaitDrain(ctx)
	}
	closeAll(&l.conns, stopped)
	cancel()
	l.wg.Wait()
	return err
}

// awaitDrain waits until Drain has ended all connections, or ctx ends.
func (l *listener) awaitDrain(ctx context.Context) {
	select {
	case <-l.s.lifecycle.whenDrained():
	case <-ctx.Done():
	}
}

// accept takes connections until ctx ends or s drains (nil), or ln fails for
// good.
func (l *listener) accept(ctx context.Context) error {
	var spare socket.SpareFile
	spare.Open()
	defer spare.Close()
	backoff := acceptBackoffMin
	for {
		c, err := l.ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case err == nil && !spare.Open():
			l.s.drops.Add(l.door.name(), drops.Files)
			socket.Reset(c)
		case err == nil:
			backoff = acceptBackoffMin
			l.start(ctx, c)
		case l.s.lifecycle.isDraining():
			return nil
		case accept.Passes(err):
			l.s.drops.AcceptErrors.Add(1)
			l.s.log().Warn("accept", "err", err, "retry_in", backoff)
			if socket.OutOfFiles(err) {
				l.s.freeFiles()
			}
			wait(ctx, backoff)
			if backoff = min(2*backoff, acceptBackoffMax); backoff > acceptPatience && socket.OutOfFiles(err) {
				spare.Close() // for the next one: a reset tells it
			}
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// start admits nc and serves it in a goroutine of its own.
func (l *listener) start(ctx context.Context, nc net.Conn) {
	s := l.s
	c := newConn(s, nc, l.door.name())
	refusing := false
	if c.full = s.admitted.Enter(&c.places[0], c, s.bounds().Limits, s.now()); c.full != "" {
		if refusing = s.admitted.Refuse(); !refusing {
			s.drops.Add(c.door, drops.Full)
			socket.Reset(nc)
			return
		}
	}
	ctx, c.cancel = context.WithCancel(ctx)
	if !l.conns.Enter(c) {
		_ = nc.Close()
		l.left(c, refusing)
		return
	}
	l.wg.Add(1)
	go l.handle(ctx, c, refusing)
}

// handle leads c through its door, and carries the tunnel that the door may open
// to its end. handle returns before a tunnel ends: two goroutines of the relay
// engine carry it, with little more than the stacks that they begin with.
func (l *listener) handle(ctx context.Context, c *conn, refusing bool) {
	stack.Grow()
	if t := l.enter(ctx, c); t != nil {
		t.carry(func() { l.closed(c, refusing) })
		return
	}
	l.closed(c, refusing)
}

// enter leads c through its door. The tunnel that is open then is still to be
// carried; nil: everything has been done for c.
func (l *listener) enter(ctx context.Context, c *conn) *tunnel {
	defer c.survive(nil)
	if l.s.Route == nil {
		if _, no := c.join(l.s); no != nil {
			return nil // the Server has been stopped
		}
	}
	return l.door.serve(ctx, c)
}

// closed is the end of a connection that handle was started for.
func (l *listener) closed(c *conn, refusing bool) {
	_ = c.Conn.Close() // doors close it; a second close does no harm
	c.Release()
	l.conns.Leave(c)
	l.left(c, refusing)
	l.wg.Done()
}

// left gives back what start took.
func (l *listener) left(c *conn, refusing bool) {
	if refusing {
		l.s.admitted.Refused()
	}
	c.leave()
}

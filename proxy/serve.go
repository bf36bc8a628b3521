package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"egressd/event"
	"egressd/internal/accept"
	"egressd/policy"
	"egressd/proxy/internal/admission"
)

// Implementation constants: what a client may take its time for. The times for
// heads and hellos are limits of the policy.
const (
	writeTimeout  = 15 * time.Second // to take an answer of ours
	lingerTimeout = time.Second      // to take a denial before the connection is gone
	lingerBytes   = 64 << 10

	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
	acceptPatience   = 50 * time.Millisecond // backoff from which on clients are refused rather than left waiting
)

// Serve runs the explicit doors (CONNECT, absolute-form HTTP, SOCKS4, 4a and 5)
// on ln until ctx ends, s drains or ln fails. It closes ln, and returns only
// after every goroutine it started has exited.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, &listener{s: s, ln: ln, door: event.DoorHTTP, serve: s.explicit})
}

// ServeTransparent is Serve for captured TCP: the destination is the
// connection's original one (SO_ORIGINAL_DST, else its local address).
func (s *Server) ServeTransparent(ctx context.Context, ln net.Listener) error {
	own := addrPort(ln.Addr())
	return s.serve(ctx, &listener{s: s, ln: ln, door: event.DoorTransparent, serve: func(ctx context.Context, c *conn) {
		s.captured(ctx, c, own)
	}})
}

// ServeFixed is Serve for a listener that stands for one destination.
func (s *Server) ServeFixed(ctx context.Context, ln net.Listener, h policy.Host, port uint16) error {
	return s.serve(ctx, &listener{s: s, ln: ln, door: event.DoorTransparent, serve: func(ctx context.Context, c *conn) {
		s.fixed(ctx, c, h, port)
	}})
}

// listener is one Serve call.
type listener struct {
	s     *Server
	ln    net.Listener
	door  event.Door // for what happens before a client has said what it wants
	serve func(context.Context, *conn)

	wg       sync.WaitGroup // one per connection, and the sweeper
	conns    admission.Set[*visit]
	accepted chan struct{} // closed when nothing more is accepted
}

func (s *Server) serve(ctx context.Context, l *listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.accepted = make(chan struct{})
	if !s.begin(l) {
		_ = l.ln.Close() // what drained s has closed the others
		return nil
	}
	defer s.end(l)
	if b := s.bounds(); b.FewFiles && s.fewFiles.CompareAndSwap(false, true) {
		s.log().Info("the limit on open files leaves room for fewer connections than the policy", "connections", b.Connections)
	}
	if own := addrPort(l.ln.Addr()); reachable(l.ln) {
		s.serving.add(own)
		defer s.serving.remove(own)
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

// awaitDrain waits until Drain has seen to all connections, or ctx ends.
func (l *listener) awaitDrain(ctx context.Context) {
	select {
	case <-l.s.life.whenDrained():
	case <-ctx.Done():
	}
}

// accept takes connections until ctx ends or s drains (nil), or ln fails for
// good.
func (l *listener) accept(ctx context.Context) error {
	var spare spareFile
	spare.open()
	defer spare.close()
	backoff := acceptBackoffMin
	for {
		c, err := l.ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case err == nil && !spare.open():
			l.s.drops.add(l.door, dropFiles)
			reset(c)
		case err == nil:
			backoff = acceptBackoffMin
			l.start(ctx, c)
		case l.s.life.isDraining():
			return nil
		case accept.Passes(err):
			l.s.drops.acceptErrors.Add(1)
			l.s.log().Warn("accept", "err", err, "retry_in", backoff)
			if noFiles(err) {
				l.s.freeFiles()
			}
			wait(ctx, backoff)
			if backoff = min(2*backoff, acceptBackoffMax); backoff > acceptPatience && noFiles(err) {
				spare.close() // for the next one: it is told, by a reset
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

// start admits c and serves it in a goroutine of its own.
func (l *listener) start(ctx context.Context, c net.Conn) {
	s := l.s
	v := &visit{front: s, conn: c, client: peer(c), door: l.door}
	refusing := false
	if v.full = s.admitted.Enter(&v.seats[0], v, s.bounds().Limits, s.now()); v.full != "" {
		if refusing = s.admitted.Refuse(); !refusing {
			s.drops.add(l.door, dropFull)
			reset(c)
			return
		}
	}
	ctx, v.cancel = context.WithCancel(ctx)
	if !l.conns.Enter(v) {
		_ = c.Close()
		l.left(v, refusing)
		return
	}
	l.wg.Add(1)
	go l.handle(context.WithValue(ctx, visitKey{}, v), v, refusing)
}

// handle leads the connection through its door. A tunnel goes on when the door
// has returned, and handle with it: the large stack that a door needs is not
// kept for as long as the tunnel is open.
func (l *listener) handle(ctx context.Context, v *visit, refusing bool) {
	growStack()
	c := &conn{Conn: v.conn, v: v, pool: &l.s.heads, budget: &l.s.held}
	l.enter(ctx, c)
	if r := c.tunnel; r != nil {
		r.carry(func() { l.ended(c, refusing) })
		return
	}
	l.ended(c, refusing)
}

func (l *listener) enter(ctx context.Context, c *conn) {
	s := l.s
	defer s.survive(ctx, nil)
	if s.Route == nil {
		if _, no := c.v.join(s); no != nil {
			return // s has been stopped
		}
	}
	l.serve(ctx, c)
}

// growStack makes room for what a door calls, in one step and while there is
// nothing to copy.
//
//go:noinline
func growStack() {
	var room [12 << 10]byte
	use(&room)
}

//go:noinline
func use(*[12 << 10]byte) {}

// ended is the end of a connection that handle was started for.
func (l *listener) ended(c *conn, refusing bool) {
	_ = c.Conn.Close() // doors close it; a second close does no harm
	c.release()
	l.conns.Leave(c.v)
	l.left(c.v, refusing)
	l.wg.Done()
}

// left gives back what start took.
func (l *listener) left(v *visit, refusing bool) {
	if refusing {
		l.s.admitted.Refused()
	}
	v.leave()
}

// addrPort reports a as a TCP address, zero when it is none.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

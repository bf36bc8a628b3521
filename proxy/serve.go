package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"egressd/policy"
)

// Implementation constants: what a client may take its time for.
const (
	headTimeout   = 15 * time.Second // to say what it wants, in full
	helloTimeout  = 15 * time.Second // from our "yes" to the end of its ClientHello
	writeTimeout  = 15 * time.Second // to take an answer of ours
	lingerTimeout = time.Second      // to take a denial before the connection is gone
	lingerBytes   = 64 << 10

	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
)

// Serve runs the explicit doors (CONNECT, absolute-form HTTP, SOCKS4, 4a and 5)
// on ln until ctx ends or ln fails. It closes ln, and returns only after every
// goroutine it started has exited.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, ln, s.explicit)
}

// ServeTransparent is Serve for captured TCP: the destination is the
// connection's original one (SO_ORIGINAL_DST, else its local address).
func (s *Server) ServeTransparent(ctx context.Context, ln net.Listener) error {
	own := addrPort(ln.Addr())
	return s.serve(ctx, ln, func(ctx context.Context, c *conn) { s.captured(ctx, c, own) })
}

// ServeFixed is Serve for a listener that stands for one destination.
func (s *Server) ServeFixed(ctx context.Context, ln net.Listener, h policy.Host, port uint16) error {
	return s.serve(ctx, ln, func(ctx context.Context, c *conn) { s.fixed(ctx, c, h, port) })
}

// listener is one Serve call.
type listener struct {
	s     *Server
	serve func(context.Context, *conn)

	wg    sync.WaitGroup // one per connection, and the sweeper
	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil once shutting down
}

func (s *Server) serve(ctx context.Context, ln net.Listener, door func(context.Context, *conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	if own := addrPort(ln.Addr()); reachable(ln) {
		s.serving.add(own)
		defer s.serving.remove(own)
	}
	s.engine.start()
	defer s.engine.stop()
	l := &listener{s: s, serve: door, conns: make(map[net.Conn]struct{})}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends accept
	l.wg.Go(func() { s.sweeper(ctx) })
	err := l.accept(ctx, ln)
	stop()
	_ = ln.Close() // closed twice when ctx ended: no harm
	cancel()
	l.closeAll()
	l.wg.Wait()
	s.closeUpstreams() // another Serve of s dials anew
	return err
}

// accept takes connections until ctx ends (nil) or ln fails for good.
func (l *listener) accept(ctx context.Context, ln net.Listener) error {
	backoff := acceptBackoffMin
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case err == nil:
			backoff = acceptBackoffMin
			l.start(ctx, c)
		case passing(err):
			l.s.log().Warn("accept", "err", err, "retry_in", backoff)
			wait(ctx, backoff)
			backoff = min(2*backoff, acceptBackoffMax)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// passing reports whether accept fails for a while only: no descriptors, no
// memory, or a client that was gone before it was accepted.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
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
	s, client := l.s, peer(c)
	full, ok := s.admitted.enter(client.Addr(), s.bounds(), s.now())
	if !ok {
		reset(c)
		return
	}
	if !l.add(c) {
		s.admitted.leave(client.Addr(), full)
		_ = c.Close()
		return
	}
	l.wg.Go(func() { l.handle(ctx, c, client.Addr(), full) })
}

func (l *listener) handle(ctx context.Context, c net.Conn, client netip.Addr, full bool) {
	defer l.s.admitted.leave(client, full)
	defer l.remove(c)
	ctx = withApprovals(ctx)
	if full {
		ctx = withOverLimit(ctx)
	}
	pc := &conn{Conn: c, pool: &l.s.heads}
	defer pc.release()
	l.serve(ctx, pc)
	_ = c.Close() // doors close it; a second close does no harm
}

func (l *listener) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *listener) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// closeAll ends every connection: their goroutines see a read error.
func (l *listener) closeAll() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
}

// addrPort reports a as a TCP address, zero when it is none.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

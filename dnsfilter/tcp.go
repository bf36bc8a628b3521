package dnsfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// errQueryTooLong ends a connection whose next message is too long for a question.
var errQueryTooLong = errors.New("query longer than a question can be")

// serveTCP accepts connections until ln is closed.
func (r *running) serveTCP(ctx context.Context, ln net.Listener) {
	for errs := 0; ; {
		c, err := ln.Accept()
		if err != nil {
			if errs++; !r.pause(ctx, "tcp", errs, err) {
				return
			}
			continue
		}
		errs = 0
		client := addrPort(c.RemoteAddr())
		if !r.keep(c, client.Addr()) {
			_ = c.Close() // over its share, or closing
			continue
		}
		r.wg.Go(func() { r.serveConn(ctx, c, client) })
	}
}

// keep remembers c so that closeConns ends it; false when there is no room.
func (r *running) keep(c net.Conn, client netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil || !r.tcp.acquire(client) {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *running) forget(c net.Conn, client netip.Addr) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	_ = c.Close()
	r.tcp.release(client)
}

// addrPort reports a as an address and port, IPv4-mapped ones as IPv4; zero
// when a is none.
func addrPort(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := a.(type) {
	case *net.UDPAddr:
		ap = a.AddrPort()
	case *net.TCPAddr:
		ap = a.AddrPort()
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// closeConns ends every open connection and admits no more.
func (r *running) closeConns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// tcpConn is one client connection: pipelined queries are answered side by
// side and possibly out of order (RFC 7766 section 6.2.1.1), writes are whole.
type tcpConn struct {
	net.Conn
	client netip.AddrPort
	mu     sync.Mutex // one answer at a time
	slots  chan struct{}
	wg     sync.WaitGroup
}

// serveConn answers queries on c until it closes, idles or misbehaves.
func (r *running) serveConn(ctx context.Context, c net.Conn, client netip.AddrPort) {
	defer r.forget(c, client.Addr())
	t := &tcpConn{Conn: c, client: client, slots: make(chan struct{}, tcpPerConn)}
	defer t.wg.Wait()
	for {
		wire, err := t.next()
		if err != nil {
			if errors.Is(err, errQueryTooLong) {
				r.unreadable(client) // the connection ends either way
			}
			return
		}
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		t.wg.Go(func() { r.answerTCP(ctx, t, wire) })
	}
}

// next reads one length-prefixed query (RFC 1035 section 4.2.2). The deadline
// is for the whole message: a byte now and then does not keep a connection.
func (t *tcpConn) next() ([]byte, error) {
	if err := t.SetReadDeadline(time.Now().Add(tcpIdle)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(t, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > maxQueryBytes {
		return nil, errQueryTooLong
	}
	wire := make([]byte, n)
	_, err := io.ReadFull(t, wire)
	return wire, err
}

// answerInTurn answers a query when its client has room for one more.
func (r *running) answerInTurn(ctx context.Context, t *tcpConn, wire []byte) []byte {
	if r.inFlight.acquire(t.client.Addr()) {
		defer r.inFlight.release(t.client.Addr())
		return r.answerRecovering(ctx, wire, t.client, true)
	}
	return r.overloaded(wire, t.client)
}

func (r *running) answerTCP(ctx context.Context, t *tcpConn, wire []byte) {
	defer func() { <-t.slots }()
	answer := r.answerInTurn(ctx, t, wire)
	if answer == nil {
		return
	}
	out := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(answer)), uint16(len(answer)))
	out = append(out, answer...)
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.SetWriteDeadline(time.Now().Add(tcpWrite))
	if _, err := t.Write(out); err != nil {
		_ = t.Close() // half an answer cannot be taken back
	}
}

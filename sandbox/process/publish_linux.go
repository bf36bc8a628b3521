package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"egressd/internal/linux/ipc"
	"egressd/sandbox/process/control"
)

// Bounds of published ports.
const (
	maxPublishedConns = 256              // at once, for each port
	dialLimit         = 10 * time.Second // for the init to connect inside
)

// published is a listener on the host's loopback for a server inside.
type published struct {
	ln   net.Listener
	addr netip.AddrPort
	port uint16 // inside
}

func (p Publish) inside() uint16 {
	if p.Inside != 0 {
		return p.Inside
	}
	return p.Port
}

// listenPublished opens the listeners on the host. Only loopback addresses are
// accepted: what is published is published to this machine.
func (b *Backend) listenPublished(ctx context.Context) (_ []published, err error) {
	var out []published
	defer func() {
		if err != nil {
			closeListeners(out)
		}
	}()
	for _, p := range b.Publish {
		host := p.Host
		if !host.IsValid() {
			host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		if !host.IsLoopback() {
			return out, fmt.Errorf("publish %s: not a loopback address: only this machine may reach what is published", host)
		}
		if p.inside() == 0 {
			return out, errors.New("publish: no port inside")
		}
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(host, p.Port).String())
		if errors.Is(err, syscall.EADDRINUSE) {
			other := netip.AddrFrom4([4]byte{127, 0, 0, 1})
			if host.Is4() {
				other = host.Next()
			}
			return out, fmt.Errorf("publish: %w: end what listens there, or publish at another address of this machine: --publish %s:%d", err, other, p.Port)
		}
		if err != nil {
			return out, fmt.Errorf("publish: %w", err)
		}
		addr, _ := netip.ParseAddrPort(ln.Addr().String())
		out = append(out, published{ln, addr, p.inside()})
	}
	return out, nil
}

func closeListeners(ps []published) {
	for _, p := range ps {
		p.ln.Close()
	}
}

// servePublished relays every connection to p to the server inside, until ctx
// ends. It returns when every relay has.
func (s *supervisor) servePublished(ctx context.Context, p published) {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() { p.ln.Close() })
	defer stop()
	slots := make(chan struct{}, maxPublishedConns)
	for {
		outer, err := p.ln.Accept()
		if err != nil {
			if ctx.Err() == nil {
				s.b.log().Error("publish", slog.String("addr", p.addr.String()), slog.Any("error", err))
			}
			return
		}
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				s.relayPublished(ctx, outer, p.port)
			})
		default:
			outer.Close() // over the bound
		}
	}
}

func (s *supervisor) relayPublished(ctx context.Context, outer net.Conn, port uint16) {
	defer outer.Close()
	inner, err := s.dialInside(ctx, port)
	if err != nil {
		s.b.log().Debug("publish", slog.Int("port", int(port)), slog.Any("error", err))
		return
	}
	defer inner.Close()
	stop := context.AfterFunc(ctx, func() { outer.Close(); inner.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { copyHalf(inner, outer) })
	copyHalf(outer, inner)
	wg.Wait()
}

// copyHalf copies one direction and passes its end on.
func copyHalf(dst, src net.Conn) {
	_, err := io.Copy(dst, src)
	if w, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		w.CloseWrite() //nolint:errcheck // the other direction ends it
		return
	}
	dst.Close()
	src.Close()
}

// dialTable matches the init's answers with the requests.
type dialTable struct {
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan dialResult
	closed  error
}

type dialResult struct {
	conn net.Conn
	err  error
}

func (t *dialTable) add() (uint64, chan dialResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return 0, nil, t.closed
	}
	if t.waiting == nil {
		t.waiting = map[uint64]chan dialResult{}
	}
	t.next++
	c := make(chan dialResult, 1)
	t.waiting[t.next] = c
	return t.next, c, nil
}

// take reports the channel that waits for id, nil if nothing does any more.
func (t *dialTable) take(id uint64) chan dialResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[id]
	delete(t.waiting, id)
	return c
}

func (t *dialTable) deliver(o *control.DialOutcome, fds []*os.File) {
	defer ipc.CloseAll(fds)
	c := t.take(o.ID)
	if c == nil {
		return
	}
	if len(fds) != 1 {
		c <- dialResult{err: fmt.Errorf("inside: %s", o.Err)}
		return
	}
	conn, err := net.FileConn(fds[0])
	c <- dialResult{conn, err}
}

func (t *dialTable) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = err
	for id, c := range t.waiting {
		c <- dialResult{err: err}
		delete(t.waiting, id)
	}
}

// dialInside makes the init connect to port inside.
func (s *supervisor) dialInside(ctx context.Context, port uint16) (net.Conn, error) {
	id, answer, err := s.dials.add()
	if err != nil {
		return nil, err
	}
	if err := s.child.ctl.Send(control.Message{Dial: &control.DialOrder{ID: id, Port: port}}); err != nil {
		s.dials.take(id)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	select {
	case r := <-answer:
		return r.conn, r.err
	case <-ctx.Done():
	}
	if s.dials.take(id) == nil {
		if r := <-answer; r.conn != nil { // it came just now
			r.conn.Close()
		}
	}
	return nil, ctx.Err()
}

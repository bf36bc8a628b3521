package dnsfilter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"egressd/event"
	"egressd/internal/accept"
	"egressd/policy"
)

// Implementation limits of one Serve call.
const (
	maxInFlight  = 512              // queries being answered at once, divided among clients; more get SERVFAIL
	maxTCPConns  = 128              // TCP connections at once, divided as well; more are closed unanswered
	tcpIdle      = 10 * time.Second // between two queries of a connection. RFC 7766 section 6.2.3
	tcpWrite     = 5 * time.Second  // for one answer
	tcpPerConn   = 16               // pipelined queries of one connection answered at once
	maxAcceptErr = 32               // consecutive listener errors before Serve gives up, but for those that pass
)

// Server answers DNS over UDP and TCP. Set the fields before Serve. The zero
// Server answers nothing but SERVFAIL: it has nowhere to record a query.
type Server struct {
	Policy    *policy.Current // nil denies every name
	Resolver  *Resolver       // forward mode only; nil fails look-ups
	Pins      *Pins           // synthetic mode: where addresses come from; nil fails them
	Events    event.Sink      // nil: every query fails, since none can be recorded
	Log       *slog.Logger    // nil discards
	Session   string          // copied into every event
	Isolation string

	// Route reports who answers a client: s itself or another Server, which needs
	// no Serve of its own. Nil: the client is refused. The zero Route: s answers
	// everybody. client is zero when it is not known.
	Route func(client netip.AddrPort) *Server

	// AskLater answers a name that no rule lists with a synthetic address all
	// the same, because a person will be asked when the connection arrives
	// (--approve). Names that a deny rule covers stay denied.
	AskLater bool
}

// answerer is what the loops that read sockets know of a Server: a query's bytes
// in, its reply's bytes out, and everything between (parsing, the policy, the
// record) on its side. Implementations are safe for concurrent use and keep no
// slice that they are given.
type answerer interface {
	// answerRecovering decides about one query and records that. Nil: no reply.
	answerRecovering(ctx context.Context, wire []byte, client netip.AddrPort, tcp bool) []byte
	// answerManyRecovering decides about the first n tasks of b, records them and sets
	// their replies, but for those that take a look-up: these are later.
	answerManyRecovering(b *batch, n int)
	// overloaded refuses a query without judging it, because the queue is full.
	overloaded(wire []byte, client netip.AddrPort) []byte
	// unjudged refuses a query that met a bug.
	unjudged(wire []byte, client netip.AddrPort, why policy.Reason) []byte
	// unreadable records a message that is too long for a query.
	unreadable(client netip.AddrPort)
}

// running is one Serve call: what it started and what bounds it.
type running struct {
	answerer
	wg       sync.WaitGroup // every goroutine of this call
	inFlight share          // queries
	tcp      share          // connections
	mu       sync.Mutex
	conns    map[net.Conn]struct{} // open TCP connections; nil once closing
	laters   map[*later]struct{}   // queries that wait
	leaving  bool                  // no more of them
	batches  sync.Pool             // of *batch, to answer them
	failed   chan error            // first listener that failed
}

// Serve answers on pc and ln (either may be nil) until ctx ends or one of them
// fails. It closes both, and returns only after every goroutine it started has
// exited: nil when ctx ended, else what failed. The sockets are the caller's,
// so a listening socket is readiness. Serve may be called several times at
// once, with sockets of its own each.
func (s *Server) Serve(ctx context.Context, pc net.PacketConn, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &running{
		answerer: s,
		inFlight: share{most: maxInFlight},
		tcp:      share{most: maxTCPConns},
		conns:    make(map[net.Conn]struct{}),
		failed:   make(chan error, 2),
	}
	if pc != nil {
		r.wg.Go(func() { r.serveUDP(ctx, pc) })
	}
	if ln != nil {
		r.wg.Go(func() { r.serveTCP(ctx, ln) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-r.failed:
	}
	cancel()
	if pc != nil {
		_ = pc.Close()
	}
	if ln != nil {
		_ = ln.Close()
	}
	r.closeConns()
	r.leaveLaters(ctx)
	r.wg.Wait()
	return err
}

// fail ends the Serve call because the listener named what is unusable.
func (r *running) fail(what string, err error) {
	select {
	case r.failed <- fmt.Errorf("dns over %s: %w", what, err):
	default: // somebody else failed first
	}
}

// pause waits a little after the nth consecutive listener error. It reports
// false when the listener should be given up: closed, ctx over, or too many
// errors that do not pass.
func (r *running) pause(ctx context.Context, what string, n int, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if errors.Is(err, net.ErrClosed) || n > maxAcceptErr && !accept.Passes(err) {
		r.fail(what, err)
		return false
	}
	t := time.NewTimer(min(time.Duration(n)*5*time.Millisecond, 200*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// log reports where to write; never nil.
func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

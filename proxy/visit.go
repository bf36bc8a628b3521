package proxy

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/admission"
)

// visit is one client connection from accept to close: where it came in, who
// judges it, what was let pass on it.
type visit struct {
	front  *Server // whose listener accepted it
	conn   net.Conn
	client netip.AddrPort
	door   event.Door // for what happens before the client has said what it wants
	cancel context.CancelFunc

	approvals approvals

	// Places in the admission of front, and of the judge where that is another
	// Server. Their locks are taken before mu.
	seats [2]admission.Place

	mu       sync.Mutex // guards what follows
	judge    *Server    // nil: not settled yet
	full     string     // the limit it is over; it is only served to be told
	why      string     // why the gate closed it
	evicted  bool       // it must make room before it has said what it wants
	draining bool
	onDrain  func()
}

type visitKey struct{}

// visitOf reports the connection that ctx belongs to; nil: none (a test of a
// part).
func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// settle finds who judges what the client asks for with these credentials. A
// refusal is to be told to the client; the Server is nil then.
//
// Threat: a client authenticates one request and then asks for others, on the
// same connection, in somebody else's name or in none -> credentials are read
// with every request, and one that leads elsewhere is refused. Left over: who
// can write to the client's own connection.
func (v *visit) settle(c credentials) (*Server, *refusal) {
	if v.front.Route == nil {
		return v.front, nil // settled when it was accepted
	}
	if c.bad != "" {
		return nil, refuseFor(policy.ReasonMalformed, c.bad)
	}
	s := v.front.Route(Client{Addr: v.client, Token: c.token, HasToken: c.sent})
	if s == nil {
		return nil, refuseFor(policy.ReasonNotAuthenticated, c.stranger())
	}
	v.mu.Lock()
	judge := v.judge
	v.mu.Unlock()
	switch {
	case judge == s:
		return s, nil
	case judge != nil:
		return nil, refuseFor(policy.ReasonNotAuthenticated, "the requests before this one came in another name; use a new connection")
	}
	return v.join(s)
}

// join makes s the judge. One goroutine serves a connection, so nobody else
// joins meanwhile.
func (v *visit) join(s *Server) (*Server, *refusal) {
	if s != v.front && s.life.isDraining() {
		return nil, refuseFor(policy.ReasonOverload, shuttingDown)
	}
	if !s.judged.Enter(v) {
		return nil, refuseFor(policy.ReasonNoPolicy, "the session has ended")
	}
	v.mu.Lock()
	v.judge = s
	v.mu.Unlock()
	if s.life.isDraining() {
		v.drain() // which may have begun after the look above
	}
	if s == v.front {
		return s, nil
	}
	if why := s.admitted.Enter(&v.seats[1], v, s.bounds().Limits, s.now()); why != "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.full = why
	}
	return s, nil
}

// setUp says that nothing is waited for any more but the connection itself:
// what would end the waiting is not kept for as long as a tunnel is open.
func (v *visit) setUp() {
	if v != nil {
		v.cancel()
	}
}

// leave gives back what the connection held. It is the last thing that is done
// for it.
func (v *visit) leave() {
	v.cancel()
	v.seats[0].Leave()
	v.seats[1].Leave()
	v.mu.Lock()
	judge := v.judge
	v.mu.Unlock()
	if judge != nil {
		judge.judged.Leave(v)
	}
}

// close ends the connection from outside.
func (v *visit) close(why string) {
	v.mu.Lock()
	if v.why == "" {
		v.why = why
	}
	v.mu.Unlock()
	v.cancel()
	_ = v.conn.Close() // its reader sees it
}

// closedFor reports why the gate closed the connection; "": it did not.
func (v *visit) closedFor() string {
	if v == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.why
}

// over reports the limit that the connection is over, "" when it is over none.
func (v *visit) over() string {
	if v == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.full
}

// refusedPatience is how long a connection over a limit may take to say what it
// wants: others wait to be told, too.
const refusedPatience = 2 * time.Second

// patience reports how long to wait for a client that usually may take d.
func (v *visit) patience(d time.Duration) time.Duration {
	if v.over() != "" {
		return min(d, refusedPatience)
	}
	return d
}

// drain asks the connection to end as soon as nothing is under way on it.
func (v *visit) drain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.draining {
		return
	}
	v.draining = true
	if v.onDrain != nil {
		v.onDrain()
	}
}

// whenDraining has f called when the gate drains; at once when it does so
// already. f must not block and replaces the one before; nil takes it back. It
// is not running when whenDraining returns.
func (v *visit) whenDraining(f func()) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.onDrain = f
	if f != nil && v.draining {
		f()
	}
}

func (v *visit) isDraining() bool {
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.draining
}

// Addr implements admission.Client.
func (v *visit) Addr() netip.Addr { return v.client.Addr() }

// Evict makes a connection that has not said what it wants end now, so that
// another one has its place.
func (v *visit) Evict() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.evicted = true
	_ = v.conn.SetReadDeadline(longAgo)
}

func (v *visit) isEvicted() bool {
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.evicted
}

// longAgo ends a read at once.
var longAgo = time.Unix(1, 0)

// setReadDeadline sets the deadline unless the connection must end now.
func (v *visit) setReadDeadline(t time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.evicted {
		t = longAgo
	}
	return v.conn.SetReadDeadline(t)
}

// busy says that the client has said what it wants: it keeps its place now.
// False: it has lost it.
func (v *visit) busy() bool {
	if v == nil {
		return true
	}
	ok := v.seats[0].Busy()
	return v.seats[1].Busy() && ok
}

// idle says that the client is to say what it wants (next). Until then its
// place may go to another client.
func (v *visit) idle() {
	if v == nil {
		return
	}
	now := time.Now()
	v.seats[0].Idle(now)
	v.seats[1].Idle(now)
}

// refusal is a denial and what is to be said about it.
type refusal struct {
	d      policy.Decision
	detail string
}

func refuseFor(r policy.Reason, detail string) *refusal { return &refusal{because(r), detail} }

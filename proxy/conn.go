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
	"egressd/proxy/internal/approval"
	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/wire"
)

// What the events of connections that the Server closes say.
const (
	shuttingDown = "the gate is shutting down"
	stopped      = "the gate was stopped"
	drainedLate  = "the gate was shut down before the flow had ended"
)

// conn is one client connection from accept to close: where it came in, its
// judge, what a person approved on it, and how it is ended from outside.
// What the client wants is a flow or, on an HTTP connection, an exchange after
// the other; all of them point here.
type conn struct {
	peek.Stream // its bytes

	front  *Server    // whose listener accepted it
	door   event.Door // for what happens before the client has said what it wants
	client netip.AddrPort
	cancel context.CancelFunc // ends what waits for the set-up of a flow

	approvals approval.Set
	// Places in the admission of front, and of the judge if that is another
	// Server. Their locks are taken before mu.
	places  [2]admission.Place
	onReset func() // called before a reset is sent; nil: nothing is

	mu       sync.Mutex // guards what follows
	judge    *Server    // nil: not known yet
	full     string     // the limit it is over; it is only served to be refused
	why      string     // why the Server closed it
	evicted  bool       // it must make room before it has said what it wants
	draining bool
	onDrain  func()
}

// newConn is the connection that nc is, accepted by s at door.
func newConn(s *Server, nc net.Conn, door event.Door) *conn {
	c := &conn{front: s, door: door, client: socket.AddrPort(nc.RemoteAddr()), cancel: func() {}}
	c.Stream = peek.Stream{Conn: nc, Owner: c, Pool: &s.heads, Budget: &s.held}
	return c
}

// authenticate finds the judge of what the client asks for with these credentials.
// A refusal is to be sent to the client; the Server is nil then.
//
// Threat: a client authenticates one request and then asks for others, on the
// same connection, in another name or in none -> credentials are read with every
// request, and one that leads elsewhere is refused. Left over: programs that can
// write to the client's own connection.
func (c *conn) authenticate(cr wire.Credentials) (*Server, *refusal) {
	if c.front.Route == nil {
		return c.front, nil // joined when it was accepted
	}
	if cr.Bad != "" {
		return nil, refuseFor(policy.ReasonMalformed, cr.Bad)
	}
	s := c.front.Route(Client{Addr: c.client, Token: cr.Token, HasToken: cr.Sent})
	if s == nil {
		return nil, refuseFor(policy.ReasonNotAuthenticated, cr.Missing())
	}
	switch judge := c.judgedBy(); {
	case judge == s:
		return s, nil
	case judge != nil:
		return nil, refuseFor(policy.ReasonNotAuthenticated, "the requests before this one came in another name; use a new connection")
	}
	return c.join(s)
}

// join makes s the judge. One goroutine serves a connection, so no other one
// joins meanwhile.
func (c *conn) join(s *Server) (*Server, *refusal) {
	if s != c.front && s.lifecycle.isDraining() {
		return nil, refuseFor(policy.ReasonOverload, shuttingDown)
	}
	if !s.judged.Enter(c) {
		return nil, refuseFor(policy.ReasonNoPolicy, "the session has ended")
	}
	c.mu.Lock()
	c.judge = s
	c.mu.Unlock()
	if s.lifecycle.isDraining() {
		c.drain() // which may have begun after the check above
	}
	if s == c.front {
		return s, nil
	}
	if over := s.admitted.Enter(&c.places[1], c, s.bounds().Limits, s.now()); over != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.full = over
	}
	return s, nil
}

// judgedBy reports the judge of the connection; nil: not known yet.
func (c *conn) judgedBy() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.judge
}

// leave gives back what the connection held. It is the last thing that is done
// for it.
func (c *conn) leave() {
	c.cancel()
	c.places[0].Leave()
	c.places[1].Leave()
	if judge := c.judgedBy(); judge != nil {
		judge.judged.Leave(c)
	}
}

// end closes the connection from outside; why is in its events.
func (c *conn) end(why string) {
	c.mu.Lock()
	if c.why == "" {
		c.why = why
	}
	c.mu.Unlock()
	c.cancel()
	_ = c.Conn.Close() // its reader sees it
}

// endedFor reports why the Server closed the connection; "": it did not.
func (c *conn) endedFor() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// over reports the limit that the connection is over, "" if it is over none.
func (c *conn) over() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}

// refusedPatience is how long a connection over a limit may take to say what it
// wants: others wait to be refused, too.
const refusedPatience = 2 * time.Second

// patience reports how long to wait for a client that usually may take d.
func (c *conn) patience(d time.Duration) time.Duration {
	if c.over() != "" {
		return min(d, refusedPatience)
	}
	return d
}

// busy says that the client has said what it wants: it keeps its place now.
// False: it has lost it.
func (c *conn) busy() bool {
	ok := c.places[0].Busy()
	return c.places[1].Busy() && ok
}

// idle says that the client is to say what it wants (next). Until then its
// place may go to another client.
func (c *conn) idle() {
	now := time.Now()
	c.places[0].Idle(now)
	c.places[1].Idle(now)
}

// Addr implements admission.Client.
func (c *conn) Addr() netip.Addr { return c.client.Addr() }

// Evict makes a connection that has not said what it wants end now, so that
// another one has its place.
func (c *conn) Evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evicted = true
	_ = c.Conn.SetReadDeadline(longAgo)
}

func (c *conn) isEvicted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted
}

// What the events of clients that lost their place say.
const evictedDetail = "it took over a second to say what it wants while the gate was full, and made room for others"

// longAgo ends a read at once.
var longAgo = time.Unix(1, 0)

// LimitRead implements peek.Owner: it sets the deadline unless the connection
// must end now.
func (c *conn) LimitRead(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.evicted {
		t = longAgo
	}
	return c.Conn.SetReadDeadline(t)
}

// BeforeReset implements peek.Owner.
func (c *conn) BeforeReset() {
	if c.onReset != nil {
		c.onReset()
	}
}

// drain asks the connection to end as soon as nothing is under way on it.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return
	}
	c.draining = true
	if c.onDrain != nil {
		c.onDrain()
	}
}

// whenDraining has f called when the Server drains; at once if it does so
// already. f must not block and replaces the one before; nil takes it back. It
// is not running when whenDraining returns.
func (c *conn) whenDraining(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onDrain = f
	if f != nil && c.draining {
		f()
	}
}

func (c *conn) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

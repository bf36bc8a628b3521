package admin

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// limited lets at most most connections of its listener be open.
//
// Threat: a client opens connections and sends nothing, so that a probe times out
// and its sender restarts the daemon -> every connection is accepted at once, and
// the one that has sent nothing for longest is closed; if all have sent a request,
// the one that has waited longest for its answer. Left over: a client that opens
// as many between a probe's connection and its request cuts the probe off.
type limited struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List // of *conn, the oldest first
}

// conn is one connection.
type conn struct {
	net.Conn
	of *limited

	// Guarded by of.mu.
	at    *list.Element // nil once it is closed
	asked bool          // its request is being answered
}

func limit(ln net.Listener, most int) *limited { return &limited{Listener: ln, most: most} }

// Accept waits for a connection, and makes room for it.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one, out := &conn{Conn: c, of: l}, (*conn)(nil)
	l.mu.Lock()
	if l.open.Len() >= l.most {
		out = l.idlest()
	}
	one.at = l.open.PushBack(one)
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // its handler sees that
	}
	return one, nil
}

// idlest reports the connection that makes room. Called with mu held, and one
// open at least.
func (l *limited) idlest() *conn {
	for at := l.open.Front(); at != nil; at = at.Next() {
		if c := at.Value.(*conn); !c.asked {
			return c
		}
	}
	return l.open.Front().Value.(*conn)
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	if c.at != nil {
		c.of.open.Remove(c.at)
		c.at = nil
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// connKey is what a request's context holds its *conn under.
type connKey struct{}

// remember is http.Server.ConnContext.
func remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// heard notes that a request has arrived whole.
func heard(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.asked = true
}

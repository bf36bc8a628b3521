package gate

import (
	"context"
	"net"
	"sync"
)

// Run keeps going a gate that is reached by another's Route, until ctx ends. It
// calls started once clients may be routed here: before, they would be turned
// away. See proxy.Server.Run.
func (g *Gate) Run(ctx context.Context, started func()) error {
	return g.proxy.Serve(ctx, &noListener{started: started, closed: make(chan struct{})})
}

// noListener is a listener that nobody connects to. A server that accepts on it
// has started, which Run of the proxy does not tell.
type noListener struct {
	started func()
	once    sync.Once
	end     sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *noListener) Accept() (net.Conn, error) {
	l.once.Do(l.started)
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *noListener) Close() error {
	l.end.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *noListener) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

func (nowhere) Network() string { return "none" }
func (nowhere) String() string  { return "none" }

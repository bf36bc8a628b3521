package proxy

// Stats is how a Server stands. Totals grow from its first Serve.
type Stats struct {
	Connections int // client connections that are judged here, now
	Flows       int // flows that were allowed and go on, now

	BytesOut, BytesIn uint64 // client to origin and back, total
	Dropped           uint64 // connections that could not even be told why not, total
	AcceptErrors      uint64 // total
}

// Stats reports how s stands. Safe for concurrent use.
func (s *Server) Stats() Stats {
	return Stats{Connections: s.admitted.connections(), Flows: s.open.size()}
}

func (a *admission) connections() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}

func (g *registry) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.flows)
}

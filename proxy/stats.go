package proxy

// Stats is how a Server stands. Totals grow from its first Serve.
type Stats struct {
	Connections int // client connections that are judged here, now
	Flows       int // flows that were allowed and go on, now
	Most        int // connections that are let in at a time: the policy's limit, or what the descriptors leave room for

	BytesOut, BytesIn uint64 // to origins and from them, total
	Dropped           uint64 // connections that ended without a word, for want of room; total
	AcceptErrors      uint64 // total
}

// Stats reports how s stands. What a listener cannot let in counts for the Server
// of the listener; answers to clients and flows count for the Server that judges.
// Safe for concurrent use.
func (s *Server) Stats() Stats {
	return Stats{
		Connections: s.judged.Len(), Flows: s.open.Len(), Most: s.bounds().Connections,
		BytesOut: s.carried[out].Load(), BytesIn: s.carried[in].Load(),
		Dropped: s.drops.Total.Load(), AcceptErrors: s.drops.AcceptErrors.Load(),
	}
}

// The directions of Server.carried.
const (
	out = iota // client to origin
	in
)

package dnsfilter

import (
	"net/netip"
	"sync"
)

// share is a semaphore that is divided among clients: no client gets more than
// it leaves for others. The zero share admits nothing. Safe for concurrent use.
//
// Threat: a client asks for names whose servers never answer, or opens
// connections and says nothing, until the bound is reached, and the others get
// no answer -> alone it gets half, beside one like it each gets a third, and
// a client that asks little finds room. Left over: a client with many addresses is
// many clients; look-ups of a Resolver that several doors share have one bound.
type share struct {
	most int

	mu    sync.Mutex
	total int
	by    map[netip.Addr]int // never zero
}

// acquire reports whether client gets one more. It then calls release.
func (s *share) acquire(client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.most - s.total; left <= 0 || s.by[client] >= left {
		return false
	}
	if s.by == nil {
		s.by = make(map[netip.Addr]int)
	}
	s.by[client]++
	s.total++
	return true
}

func (s *share) release(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.by[client]--; s.by[client] <= 0 {
		delete(s.by, client)
	}
}

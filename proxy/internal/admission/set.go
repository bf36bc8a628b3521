package admission

import "sync"

// Set holds connections that are waited for at the end. The zero Set is closed:
// nothing enters it. Safe for concurrent use.
type Set[C comparable] struct {
	mu    sync.Mutex
	open  bool
	in    map[C]struct{}
	empty chan struct{} // closed when the last one leaves; nil while nothing waits
}

// Open lets connections in.
func (s *Set[C]) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	if s.in == nil {
		s.in = make(map[C]struct{})
	}
}

// Enter adds c. False: the set is closed. After true, Leave must follow.
func (s *Set[C]) Enter(c C) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.in[c] = struct{}{}
	}
	return s.open
}

// Leave removes c.
func (s *Set[C]) Leave(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.in, c)
	if len(s.in) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// Len reports how many are in.
func (s *Set[C]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.in)
}

// All reports those that are in now, in no order.
func (s *Set[C]) All() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]C, 0, len(s.in))
	for c := range s.in {
		all = append(all, c)
	}
	return all
}

// Gone reports a channel that is closed once the set is empty.
func (s *Set[C]) Gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty == nil {
		s.empty = make(chan struct{})
		if len(s.in) == 0 {
			closed := s.empty
			close(closed)
			s.empty = nil
			return closed
		}
	}
	return s.empty
}

// Close shuts the set and reports the connections that are still in.
func (s *Set[C]) Close() []C {
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
	return s.All()
}

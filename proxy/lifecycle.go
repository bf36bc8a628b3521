package proxy

import (
	"sync"

	"egressd/policy/room"
)

// lifecycle is which listeners a Server has and whether it accepts connections.
type lifecycle struct {
	turn sync.Mutex // held while the first call begins and the last one ends

	mu        sync.Mutex // guards what follows
	users     int        // Serve and Run calls under way
	listeners map[*listener]struct{}
	draining  bool
	drained   chan struct{} // closed when Drain is done; nil before it was asked for
	room      room.Room     // from the first Serve on
}

func (l *lifecycle) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

func (l *lifecycle) roomFor() room.Room {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room
}

// whenDrained reports a channel that is closed when Drain is done.
func (l *lifecycle) whenDrained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	return l.drained
}

// startDraining reports the listeners there are; more do not come.
func (l *lifecycle) startDraining() []*listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	all := make([]*listener, 0, len(l.listeners))
	for ln := range l.listeners {
		all = append(all, ln)
	}
	return all
}

func (l *lifecycle) finishDraining() {
	done := l.whenDrained()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-done:
	default:
		close(l.drained)
	}
}

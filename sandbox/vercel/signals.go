package vercel

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals are those that ask this process to end, while a run lasts.
type signals struct {
	c chan os.Signal

	mu     sync.Mutex
	first  syscall.Signal
	urgent bool
}

func catch() *signals {
	s := &signals{c: make(chan os.Signal, 4)}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

// note remembers the first one.
func (s *signals) note(sig os.Signal) syscall.Signal {
	n, _ := sig.(syscall.Signal)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urgent = s.urgent || s.first != 0 || n != syscall.SIGINT
	if s.first == 0 {
		s.first = n
	}
	return n
}

// caught reports the first signal; 0: there was none.
func (s *signals) caught() syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// hurry reports whether there was more than one signal, or one other than INT:
// the process may be killed soon.
func (s *signals) hurry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urgent
}

// cancelling lets a signal cancel, until the function that it reports is
// called, which may be called again.
func (s *signals) cancelling(cancel context.CancelFunc) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-s.c:
			s.note(sig)
			cancel()
		case <-stop:
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-done
	})
}

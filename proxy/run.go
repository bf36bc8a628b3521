package proxy

import (
	"context"
	"sync"
	"time"

	"egressd/proxy/internal/admission"
)

// drainPatience is how long a client that has said nothing yet may still say
// what it wants when the gate drains.
const drainPatience = time.Second

// begin brackets, with end, one Serve or Run call. ln is nil for Run. False:
// the Server has been drained and serves no more.
func (s *Server) begin(ln *listener) bool {
	l := &s.lifecycle
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return false
	}
	if l.users++; l.users == 1 {
		l.room = Room(s.Memory)
		s.judged.Open()
	}
	if ln != nil {
		if l.listeners == nil {
			l.listeners = make(map[*listener]struct{})
		}
		l.listeners[ln] = struct{}{}
	}
	return true
}

// end is the end of one Serve or Run call. The last one closes what is left of
// the connections that s judges, and waits for them.
func (s *Server) end(ln *listener) {
	l := &s.lifecycle
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	delete(l.listeners, ln)
	l.users--
	last := l.users == 0
	l.mu.Unlock()
	s.reportDrops()
	if !last {
		return
	}
	closeAll(&s.judged, stopped)
	<-s.judged.Gone()
	s.engine.Trim()
	s.pool.Close() // another Serve of s dials anew
}

// Run keeps a Server going that has no listener of its own and is reached by
// another Server's Route alone. It calls started, if not nil, once clients
// may be routed here: before, they are turned away. When ctx ends, the
// connections that it judges are closed, and Run returns after they are gone; it
// returns as well when Drain has finished. A Server that neither runs nor serves
// accepts no connection.
func (s *Server) Run(ctx context.Context, started func()) {
	if !s.begin(nil) {
		return
	}
	if started != nil {
		started()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.sweeper(ctx) })
	select {
	case <-ctx.Done():
	case <-s.lifecycle.whenDrained():
	}
	cancel()
	wg.Wait()
	s.end(nil)
}

// Drain shuts s down gracefully. Every listener of s is closed, so that the kernel
// refuses new connections. Kept-alive connections without a request end at
// once, responses under way say that their connection ends with them, and
// tunnels may go on until ctx ends; what is left then is closed, and its events
// say so. Drain returns after all of them are gone, with ctx's error if some
// had to be closed. The Serve and Run calls return, too, and s serves no more.
func (s *Server) Drain(ctx context.Context) error {
	listeners := s.lifecycle.startDraining()
	defer s.lifecycle.finishDraining()
	for _, l := range listeners {
		_ = l.ln.Close() // ends accept, whatever it says
	}
	sets := []*admission.Set[*conn]{&s.judged}
	for _, l := range listeners {
		select {
		case <-l.accepted:
		case <-ctx.Done(): // a listener whose Accept outlives its Close
		}
		sets = append(sets, &l.conns)
	}
	for _, set := range sets {
		for _, c := range set.All() {
			c.drain()
		}
	}
	var err error
	for _, set := range sets {
		select {
		case <-set.Gone():
			continue
		case <-ctx.Done():
		}
		if set.Len() > 0 {
			err = ctx.Err()
		}
		closeAll(set, drainedLate)
		<-set.Gone()
	}
	return err
}

// closeAll shuts set and closes the connections in it; why
// is in their events. It does not wait.
func closeAll(set *admission.Set[*conn], why string) {
	for _, c := range set.Close() {
		c.end(why)
	}
}

// sweepEvery is how often idle flows are looked for: limits in time are exact to
// within it. It is also how often silent refusals are summed up in an event.
const sweepEvery = time.Second

// sweeper runs beside every Serve and Run. Several at a time do no harm.
func (s *Server) sweeper(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.tidy()
		}
	}
}

// tidy does what is due each second.
func (s *Server) tidy() {
	defer s.surviveTick()
	now, b := s.now(), s.bounds()
	s.reportDrops()
	s.admitted.Tidy(b.Limits, now)
	s.open.Sweep(now, b.flows)
}

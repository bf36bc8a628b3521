package handover

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/event/phase"
	"egressd/gate"
	"egressd/policy"
)

// Server serves the launchers of one control socket. Set the fields before Serve;
// its methods are safe for concurrent use.
//
// Threat: a launcher asks for more than its daemon's operator allows -> its
// policy is narrowed by the ceiling (policy.Under), the daemon resolves its
// names, it has its own secrets and none of the daemon's, the daemon's listeners
// are never dialled, and the smaller limits hold. Left over: everybody who may
// connect to the socket may reach what the ceiling allows, from the daemon's place
// in the network.
type Server struct {
	Name     string              // of the ceiling, for logs and events
	Ceiling  *policy.Current     // nil, or without a policy: every launcher is refused
	Resolver *dnsfilter.Resolver // for every launcher; nil: no name resolves

	// Events records session.opened, session.refused and session.closed, and every
	// event that goes to a launcher. Nil: every launcher is refused.
	Events event.Sink
	Took   phase.Took // hears how long the phases of flows lasted; nil: nobody does

	Own     []netip.AddrPort // the daemon's listeners: never dialled
	RootCAs *x509.CertPool   // verifies the origins of intercepted TLS; nil: the system's roots
	Log     *slog.Logger     // nil discards
	Version string

	Limits Limits

	// IDs holds the session names (strings) that are in use: those of every server
	// that shares it, and what else the record uses. Nil: this server's alone.
	IDs *sync.Map

	admission
}

// Limits bounds what launchers may use. Zero fields have defaults.
type Limits struct {
	Handovers        int // at once; 4096
	HandoversPerUser int // at once of one user id; 1024
	HelloBytes       int // of one launcher's policy and secrets; 4 MiB
	Bytes            int // of all policies and secrets together; 32 MiB. They take 15 times that
	BytesPerUser     int // of those of one user id; 16 MiB
}

// Implementation constants.
const (
	defaultHandovers     = 4096
	defaultUserHandovers = 1024
	defaultHelloBytes    = 4 << 20
	defaultBytes         = 32 << 20
	defaultUserBytes     = 16 << 20
	acceptPause          = 100 * time.Millisecond
)

// Serve serves the launchers that connect to ln until ctx ends, and closes ln.
// Every handover ends with ctx. Serve returns after every goroutine it started has
// exited; an error says why it stopped before its time.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // wakes Accept, which reports it
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	paused := false
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close() // nobody was served on it
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("control socket: %w", err)
		case err != nil: // out of descriptors, mostly: connections stay in the queue
			if !paused {
				s.log().Error("control socket", slog.Any("error", err))
			}
			paused = true
			wait(ctx, acceptPause)
			continue
		}
		paused = false
		conn, ok := c.(*net.UnixConn)
		if !ok {
			_ = c.Close()
			return fmt.Errorf("control socket: %s is not a unix socket", ln.Addr().Network())
		}
		s.admit(ctx, &wg, conn)
	}
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Renarrow puts a changed ceiling in force for every launcher and closes the flows
// that it denies. It reports how many it closed.
func (s *Server) Renarrow() (closed int) {
	for _, one := range s.list() {
		closed += one.renarrow()
	}
	return closed
}

// Gates lists the gates of the launchers that were accepted.
func (s *Server) Gates() []*gate.Gate {
	var out []*gate.Gate
	for _, one := range s.list() {
		if g := one.engine(); g != nil {
			out = append(out, g)
		}
	}
	return out
}

// Drain refuses new launchers, closes the doors of the others and lets their flows
// finish until ctx ends. The connections to launchers end with Serve.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	var wg sync.WaitGroup
	all := s.list()
	errs := make([]error, len(all))
	for i, one := range all {
		wg.Go(func() { errs[i] = one.drain(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Server) list() []*handover {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*handover, 0, len(s.handovers))
	for one := range s.handovers {
		out = append(out, one)
	}
	return out
}

// enter counts one launcher in.
func (s *Server) enter(one *handover) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IDs == nil {
		s.IDs = new(sync.Map)
	}
	id := one.hello.Session
	_, taken := s.IDs.LoadOrStore(id, struct{}{})
	switch err := s.full(one); {
	case taken:
		one.hello.Session = "" // the record must not show another's name for this one
		return cmp.Or(err, fmt.Errorf("there is a session %s already", id))
	case err != nil:
		s.IDs.Delete(id)
		return err
	}
	if s.handovers == nil {
		s.handovers = make(map[*handover]struct{})
	}
	s.handovers[one] = struct{}{}
	s.bytes += one.bytes
	one.user.bytes += one.bytes
	one.user.handovers++
	return nil
}

// full reports why there is no room for one more. Called with mu held.
func (s *Server) full(one *handover) error {
	uid, u, limits := one.peer.uid, one.user, s.Limits
	switch {
	case s.draining:
		return errors.New("it is being shut down")
	case len(s.handovers) >= or(limits.Handovers, defaultHandovers):
		return fmt.Errorf("there are %d sessions already; wait until some have ended", len(s.handovers))
	case u.handovers >= or(limits.HandoversPerUser, defaultUserHandovers):
		return fmt.Errorf("user %d has %d sessions already; end some of them", uid, u.handovers)
	case u.bytes+one.bytes > or(limits.BytesPerUser, defaultUserBytes), s.bytes+one.bytes > or(limits.Bytes, defaultBytes):
		return fmt.Errorf("the policies of user %d's sessions take %d bytes already, those of all sessions %d: no room for %d more; put long lists into the daemon's policy",
			uid, u.bytes, s.bytes, one.bytes)
	}
	return nil
}

// leave undoes enter.
func (s *Server) leave(one *handover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handovers, one)
	s.IDs.Delete(one.hello.Session)
	s.bytes -= one.bytes
	one.user.bytes -= one.bytes
	one.user.handovers--
	s.forget(one.peer.uid, one.user)
}

func (s *Server) ceiling() *policy.Policy {
	if s.Ceiling == nil {
		return nil
	}
	return s.Ceiling.Load()
}

func (s *Server) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.New(slog.DiscardHandler)
}

func or(v, def int) int {
	if v > 0 {
		return v
	}
	return def
}

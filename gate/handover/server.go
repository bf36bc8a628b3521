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
	"egressd/gate"
	"egressd/policy"
)

// Server serves the sessions of one control socket. Set the fields before
// Serve; its methods are safe for concurrent use.
//
// Threat: a launcher asks for more than its daemon's operator allows -> its
// policy is narrowed by the ceiling (policy.Under), its names are resolved by
// the daemon, its secrets are its own and the daemon's are not lent, the
// daemon's listeners are never dialled, and its limits are the smaller ones.
// Left over: whoever may connect to the socket may reach what the ceiling
// allows, from the daemon's place in the network.
type Server struct {
	Name     string              // of the ceiling, for logs and events
	Ceiling  *policy.Current     // nil, or without a policy: no session is opened
	Resolver *dnsfilter.Resolver // of every session; nil: no name resolves

	// Events records session.opened, session.refused and session.closed, and
	// every event of every session besides its launcher. Nil: no session is opened.
	Events event.Sink

	Own     []netip.AddrPort // the daemon's listeners: never dialled
	RootCAs *x509.CertPool   // whom intercepted origins must be verified by; nil: the system's
	Log     *slog.Logger     // nil discards
	Version string

	Limits Limits

	// Words holds the words (strings) that no session may bear any more: those of
	// the sessions of every server that shares it, and what else the record uses.
	// Nil: this server's sessions alone.
	Words *sync.Map

	mu        sync.Mutex
	sessions  map[*session]struct{}
	users     map[uint32]*user
	waiting   int           // connections whose session does not stand yet
	bytes     int           // of the policies and secrets of all sessions
	settingUp chan struct{} // see user
	accepting chan struct{}
	draining  bool
}

// Limits bounds what launchers may take. Zero fields have defaults.
type Limits struct {
	Sessions        int // at once; 4096
	SessionsPerUser int // at once of one user id; 1024
	HelloBytes      int // of a session's policy and secrets; 4 MiB
	Bytes           int // of those of all sessions together; 32 MiB. They take 15 times that
	BytesPerUser    int // of those of one user id; 16 MiB
}

// Implementation constants.
const (
	defaultSessions   = 4096
	defaultPerUser    = 1024
	defaultHelloBytes = 4 << 20
	defaultBytes      = 32 << 20
	defaultUserBytes  = 16 << 20
	acceptPause       = 100 * time.Millisecond
)

// Serve serves the launchers that connect to ln until ctx ends, and closes ln.
// Every session ends with ctx. It returns after every goroutine it started has
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
		case err != nil: // out of descriptors, mostly: those who wait keep waiting
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
			return fmt.Errorf("control socket: %s is no unix socket", ln.Addr().Network())
		}
		s.admit(ctx, &wg, conn)
	}
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Renarrow puts the ceiling in force for every session, after it has changed,
// and closes the flows that are denied now. It reports how many it closed.
func (s *Server) Renarrow() (closed int) {
	for _, one := range s.list() {
		closed += one.renarrow()
	}
	return closed
}

// Gates lists the gates of the sessions that stand.
func (s *Server) Gates() []*gate.Gate {
	var out []*gate.Gate
	for _, one := range s.list() {
		if g := one.engine(); g != nil {
			out = append(out, g)
		}
	}
	return out
}

// Drain refuses new sessions, closes the doors of those that stand, and lets
// their flows finish until ctx ends. The sessions themselves end with Serve.
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

func (s *Server) list() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*session, 0, len(s.sessions))
	for one := range s.sessions {
		out = append(out, one)
	}
	return out
}

// enter counts one into the sessions.
func (s *Server) enter(one *session) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Words == nil {
		s.Words = new(sync.Map)
	}
	word := one.hello.Session
	_, taken := s.Words.LoadOrStore(word, struct{}{})
	switch err := s.room(one); {
	case taken:
		one.hello.Session = "" // the record must not say another's word of this one
		return cmp.Or(err, fmt.Errorf("there is a session %s already", word))
	case err != nil:
		s.Words.Delete(word)
		return err
	}
	if s.sessions == nil {
		s.sessions = make(map[*session]struct{})
	}
	s.sessions[one] = struct{}{}
	s.bytes += one.bytes
	one.user.bytes += one.bytes
	one.user.sessions++
	return nil
}

// room reports why there is none for one. Called with mu held.
func (s *Server) room(one *session) error {
	uid, u, limits := one.peer.uid, one.user, s.Limits
	switch {
	case s.draining:
		return errors.New("it is being shut down")
	case len(s.sessions) >= or(limits.Sessions, defaultSessions):
		return fmt.Errorf("there are %d sessions already; wait until some have ended", len(s.sessions))
	case u.sessions >= or(limits.SessionsPerUser, defaultPerUser):
		return fmt.Errorf("user %d has %d sessions already; end some of them", uid, u.sessions)
	case u.bytes+one.bytes > or(limits.BytesPerUser, defaultUserBytes), s.bytes+one.bytes > or(limits.Bytes, defaultBytes):
		return fmt.Errorf("the policies of user %d's sessions take %d bytes already, those of all sessions %d: no room for %d more; put long lists into the daemon's policy",
			uid, u.bytes, s.bytes, one.bytes)
	}
	return nil
}

// leave takes back what enter counted.
func (s *Server) leave(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, one)
	s.Words.Delete(one.hello.Session)
	s.bytes -= one.bytes
	one.user.bytes -= one.bytes
	one.user.sessions--
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

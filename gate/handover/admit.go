package handover

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Implementation constants of how launchers wait.
const (
	maxSettingUp     = 128 // connections whose session does not stand yet
	maxSettingUpUser = 8   // of one user id
	maxWaiting       = 4096
	maxWaitingUser   = 1024
	maxAccepting     = 128 // threads in accept, of all sessions: a service may have 512 in all
	maxAcceptingUser = 16  // of the sessions of one user id
)

// user is what the launchers of one user id take. Its counts are guarded by
// Server.mu.
type user struct {
	waiting   int // connections whose session does not stand yet
	sessions  int
	bytes     int           // of their policies and secrets
	settingUp chan struct{} // tokens of those who may speak
	accepting chan struct{} // tokens of those who are in accept
}

// knock counts a connection that wants a session.
//
// Threat: a launcher connects as often as it can and says nothing, so that
// nobody else is heard -> each user's connections take turns among themselves.
// Left over: who has many user ids (subordinate ones, say) has as many turns.
func (s *Server) knock(uid uint32) (*user, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = make(map[uint32]*user)
		s.settingUp, s.accepting = make(chan struct{}, maxSettingUp), make(chan struct{}, maxAccepting)
	}
	u := s.users[uid]
	if u == nil {
		u = &user{settingUp: make(chan struct{}, maxSettingUpUser), accepting: make(chan struct{}, maxAcceptingUser)}
	}
	if u.waiting >= maxWaitingUser || s.waiting >= maxWaiting {
		return nil, fmt.Errorf("user %d has %d connections that wait for a session, and there are %d: try again later", uid, u.waiting, s.waiting)
	}
	s.users[uid] = u
	u.waiting++
	s.waiting++
	return u, nil
}

// settled takes back what knock counted.
func (s *Server) settled(uid uint32, u *user) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.waiting--
	s.waiting--
	s.forget(uid, u)
}

// forget drops u when it takes nothing any more. Called with mu held.
func (s *Server) forget(uid uint32, u *user) {
	if u.waiting <= 0 && u.sessions <= 0 {
		delete(s.users, uid)
	}
}

// turn waits until one of u's connections may speak. done gives the turn back.
func (s *Server) turn(ctx context.Context, u *user) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout) // nobody waits longer for the answer
	defer cancel()
	for i, tokens := range []chan struct{}{u.settingUp, s.settingUp} {
		select {
		case tokens <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-u.settingUp
			}
			return nil, fmt.Errorf("%d others are being set up: %w", cap(tokens), ctx.Err())
		}
	}
	return func() { <-s.settingUp; <-u.settingUp }, nil
}

// admit serves c in a goroutine of wg's, when it is its turn.
func (s *Server) admit(ctx context.Context, wg *sync.WaitGroup, c *net.UnixConn) {
	p, err := peerOf(c)
	if err != nil {
		s.turnAway(c, p, err)
		return
	}
	u, err := s.knock(p.uid)
	if err != nil {
		s.turnAway(c, p, err)
		return
	}
	wg.Go(func() {
		done, err := s.turn(ctx, u)
		if err != nil {
			s.settled(p.uid, u)
			s.turnAway(c, p, err)
			return
		}
		s.serveLauncher(ctx, c, u, sync.OnceFunc(func() {
			done()
			s.settled(p.uid, u)
		}))
	})
}

// turnAway says why nobody listens to c. The record is not told: who comes so
// often would fill it.
func (s *Server) turnAway(c *net.UnixConn, p peer, why error) {
	_ = c.SetWriteDeadline(time.Now().Add(endTimeout)) // for form's sake: it fits the buffer
	_ = (&link{c: c, in: c}).sendJSON(kindRefused, refused{Why: why.Error()})
	_ = c.Close()
	s.log().Warn("a launcher was turned away", slog.String("peer", p.String()), slog.Any("error", why))
}

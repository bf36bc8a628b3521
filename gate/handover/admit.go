package handover

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Implementation constants: how launchers wait.
const (
	maxSettingUp     = 128 // connections whose hello is handled at once
	maxSettingUpUser = 8   // of one user id
	maxWaiting       = 4096
	maxWaitingUser   = 1024
	maxAccepting     = 128 // threads in accept, for all launchers: a service may have 512 in all
	maxAcceptingUser = 16  // for the launchers of one user id
)

// admission is what a Server keeps of its launchers.
type admission struct {
	mu        sync.Mutex
	handovers map[*handover]struct{}
	users     map[uint32]*user
	waiting   int           // connections that are not served yet
	bytes     int           // of all policies and secrets
	settingUp chan struct{} // see user
	accepting chan struct{}
	draining  bool
}

// user counts what the launchers of one user id use. Its counts are guarded by
// Server.mu.
type user struct {
	waiting   int // connections that are not served yet
	handovers int
	bytes     int           // of their policies and secrets
	settingUp chan struct{} // tokens for connections whose hello is handled
	accepting chan struct{} // tokens for doors that are in accept
}

// enqueue counts a connection in the queue of its user.
//
// Threat: a launcher connects as often as it can and sends nothing, so that no
// other is served -> the connections of one user take turns among themselves. Left
// over: a person with many user ids (subordinate ones, say) has as many turns.
func (s *Server) enqueue(uid uint32) (*user, error) {
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

// dequeue undoes enqueue.
func (s *Server) dequeue(uid uint32, u *user) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.waiting--
	s.waiting--
	s.forget(uid, u)
}

// forget drops u once it uses nothing. Called with mu held.
func (s *Server) forget(uid uint32, u *user) {
	if u.waiting <= 0 && u.handovers <= 0 {
		delete(s.users, uid)
	}
}

// turn waits until the hello of one of u's connections may be handled. done gives
// the turn back.
func (s *Server) turn(ctx context.Context, u *user) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout) // launchers wait no longer for the answer
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

// admit serves c in a goroutine of wg, when it is its turn.
func (s *Server) admit(ctx context.Context, wg *sync.WaitGroup, c *net.UnixConn) {
	p, err := peerOf(c)
	if err != nil {
		s.reject(c, p, err)
		return
	}
	u, err := s.enqueue(p.uid)
	if err != nil {
		s.reject(c, p, err)
		return
	}
	wg.Go(func() {
		done, err := s.turn(ctx, u)
		if err != nil {
			s.dequeue(p.uid, u)
			s.reject(c, p, err)
			return
		}
		s.serveLauncher(ctx, c, u, sync.OnceFunc(func() {
			done()
			s.dequeue(p.uid, u)
		}))
	})
}

// reject reports to c why it is not served. It is not recorded: a launcher that
// connects this often would fill the record.
func (s *Server) reject(c *net.UnixConn, p peer, why error) {
	_ = c.SetWriteDeadline(time.Now().Add(endTimeout)) // a formality: it fits the buffer
	_ = (&link{c: c, in: c}).sendJSON(kindRefused, refusal{Why: why.Error()})
	_ = c.Close()
	s.log().Warn("a launcher was turned away", slog.String("peer", p.String()), slog.Any("error", why))
}

package proxy

import (
	"net/netip"
	"sync"
	"time"

	"egressd/policy"
)

// Implementation constants: what zero policy.Limits fields mean.
const (
	defaultConnections  = 16384
	defaultRate         = 50000.0 // new flows a second
	defaultBytesPerFlow = 1 << 40
	defaultMaxDuration  = 7 * 24 * time.Hour
	defaultIdle         = time.Hour // event streams and WebSockets are quiet for long
	defaultHeadBytes    = 32 << 10
	maxHeadBytes        = 1 << 20

	// refusers bounds the connections over the limit that are still told why.
	refusers = 256
)

// bounds are policy.Limits with every default filled in.
type bounds struct {
	connections, perClient int
	rate                   float64
	bytesPerFlow           int64
	maxDuration, idle      time.Duration
	headBytes              int
}

// bounds reports the limits in force.
func (s *Server) bounds() bounds {
	var l policy.Limits
	if s.Policy != nil {
		if p := s.Policy.Load(); p != nil {
			l = p.Limits()
		}
	}
	b := bounds{
		connections:  or(l.Connections, defaultConnections),
		rate:         or(l.RatePerSecond, defaultRate),
		bytesPerFlow: or(l.BytesPerFlow, defaultBytesPerFlow),
		maxDuration:  or(time.Duration(l.MaxDurationSeconds)*time.Second, defaultMaxDuration),
		idle:         or(time.Duration(l.IdleTimeoutSeconds)*time.Second, defaultIdle),
		headBytes:    min(or(l.HeadBytes, defaultHeadBytes), maxHeadBytes),
	}
	b.perClient = or(l.ConnectionsPerClient, b.connections)
	return b
}

// or reports v, or def when v is not positive: no number means "no limit".
func or[T int | int64 | float64 | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// admission counts the connections of all listeners of one Server.
type admission struct {
	mu        sync.Mutex
	total     int
	refusing  int
	perClient map[netip.Addr]int // only clients with a connection: bounded by total
	tokens    float64
	filled    time.Time
}

// enter counts one connection from client. full says that it is over a limit
// and may only be told so; ok false that there is no room even for that. Where
// ok, leave must follow.
func (a *admission) enter(client netip.Addr, b bounds, now time.Time) (full, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.perClient == nil {
		a.perClient, a.tokens = make(map[netip.Addr]int), b.rate
	} else {
		a.tokens = min(a.tokens+now.Sub(a.filled).Seconds()*b.rate, max(b.rate, 1))
	}
	a.filled = now
	if a.total >= b.connections || a.perClient[client] >= b.perClient || a.tokens < 1 {
		if a.refusing >= refusers {
			return true, false
		}
		a.refusing++
		return true, true
	}
	a.tokens--
	a.total++
	a.perClient[client]++
	return false, true
}

// leave takes back what enter counted.
func (a *admission) leave(client netip.Addr, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if full {
		a.refusing--
		return
	}
	a.total--
	if a.perClient[client]--; a.perClient[client] <= 0 {
		delete(a.perClient, client)
	}
}

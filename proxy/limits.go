package proxy

import (
	"time"

	"egressd/policy"
	"egressd/proxy/internal/wire"
)

// Implementation constants.
const (
	// refusers bounds the connections over the limit that are still told why.
	refusers = 256
	// heldBytes bounds what is held, over the first buffer of each connection,
	// for clients that have not said what they want in full.
	heldBytes = 64 << 20
)

// bounds are policy.Limits with every default filled in.
type bounds struct {
	connections, perClient    int
	rate, ratePerClient       float64
	bytesPerFlow              int64
	maxDuration, idle         time.Duration
	headBytes, helloBytes     int
	headTimeout, helloTimeout time.Duration
	fewFiles                  bool // connections is what the limit on open files leaves
}

// bounds reports the limits in force.
func (s *Server) bounds() bounds {
	var l policy.Limits
	if p := s.inForce(); p != nil {
		l = p.Limits()
	}
	def := policy.DefaultLimits()
	b := bounds{
		connections:  or(l.Connections, def.Connections),
		rate:         or(l.RatePerSecond, def.RatePerSecond),
		bytesPerFlow: or(l.BytesPerFlow, def.BytesPerFlow),
		maxDuration:  seconds(l.MaxDurationSeconds, def.MaxDurationSeconds),
		idle:         seconds(l.IdleTimeoutSeconds, def.IdleTimeoutSeconds),
		headBytes:    or(l.HeadBytes, def.HeadBytes),
		helloBytes:   min(or(l.HelloBytes, def.HelloBytes), wire.MaxHello),
		headTimeout:  seconds(l.HeadTimeoutSeconds, def.HeadTimeoutSeconds),
		helloTimeout: seconds(l.HelloTimeoutSeconds, def.HelloTimeoutSeconds),
	}
	if most := s.life.filesFor(); most > 0 && most < b.connections {
		b.connections, b.fewFiles = most, true
	}
	b.perClient = or(l.ConnectionsPerClient, b.connections)
	b.ratePerClient = or(l.RatePerClient, b.rate)
	return b
}

// or reports v, or def when v is not positive: no number means "no limit".
func or[T int | int64 | float64 | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func seconds(v, def int64) time.Duration { return time.Duration(or(v, def)) * time.Second }

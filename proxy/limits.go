package proxy

import (
	"time"

	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/flows"
	"egressd/proxy/internal/wire"
)

// bounds are policy.Limits with every default filled in.
type bounds struct {
	admission.Limits
	bytesPerFlow              int64
	flows                     flows.Limits
	headBytes, helloBytes     int
	headTimeout, helloTimeout time.Duration
}

// bounds reports the limits in force.
func (s *Server) bounds() bounds {
	var l policy.Limits
	if p := s.inForce(); p != nil {
		l = p.Limits()
	}
	def := policy.DefaultLimits()
	b := bounds{
		Limits: admission.Limits{
			Connections: or(l.Connections, def.Connections),
			Rate:        or(l.RatePerSecond, def.RatePerSecond),
		},
		bytesPerFlow: or(l.BytesPerFlow, def.BytesPerFlow),
		flows: flows.Limits{
			MaxDuration: seconds(l.MaxDurationSeconds, def.MaxDurationSeconds),
			Idle:        seconds(l.IdleTimeoutSeconds, def.IdleTimeoutSeconds),
		},
		headBytes:    or(l.HeadBytes, def.HeadBytes),
		helloBytes:   min(or(l.HelloBytes, def.HelloBytes), wire.MaxHello),
		headTimeout:  seconds(l.HeadTimeoutSeconds, def.HeadTimeoutSeconds),
		helloTimeout: seconds(l.HelloTimeoutSeconds, def.HelloTimeoutSeconds),
	}
	if most := s.lifecycle.filesFor(); most > 0 && most < b.Connections {
		b.Connections, b.FewFiles = most, true
	}
	b.PerClient = or(l.ConnectionsPerClient, b.Connections)
	b.RatePerClient = or(l.RatePerClient, b.Rate)
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

package proxy

import (
	"cmp"
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
			Connections: cmp.Or(l.Connections, def.Connections),
			Rate:        cmp.Or(l.RatePerSecond, def.RatePerSecond),
		},
		bytesPerFlow: cmp.Or(l.BytesPerFlow, def.BytesPerFlow),
		flows: flows.Limits{
			MaxDuration: seconds(l.MaxDurationSeconds, def.MaxDurationSeconds),
			Idle:        seconds(l.IdleTimeoutSeconds, def.IdleTimeoutSeconds),
		},
		headBytes:    cmp.Or(l.HeadBytes, def.HeadBytes),
		helloBytes:   min(cmp.Or(l.HelloBytes, def.HelloBytes), wire.MaxHello),
		headTimeout:  seconds(l.HeadTimeoutSeconds, def.HeadTimeoutSeconds),
		helloTimeout: seconds(l.HelloTimeoutSeconds, def.HelloTimeoutSeconds),
	}
	if most := s.lifecycle.filesFor(); most > 0 && most < b.Connections {
		b.Connections, b.FewFiles = most, true
	}
	b.PerClient = cmp.Or(l.ConnectionsPerClient, b.Connections)
	b.RatePerClient = cmp.Or(l.RatePerClient, b.Rate)
	return b
}

func seconds(v, def int64) time.Duration { return time.Duration(cmp.Or(v, def)) * time.Second }

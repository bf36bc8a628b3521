package proxy

import (
	"time"

	"egressd/policy"
	"egressd/policy/room"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/flows"
	"egressd/proxy/internal/socket"
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

// Room reports what this process has room for, with this limit on its memory in bytes;
// zero: none is known.
func Room(memory int64) room.Room { return room.Of(socket.MaxConnections(), memory) }

// bounds reports the limits in force.
func (s *Server) bounds() bounds {
	var named policy.Limits
	if p := s.inForce(); p != nil {
		named = p.Limits()
	}
	l, short := s.lifecycle.roomFor().InForce(named)
	return bounds{
		Limits: admission.Limits{
			Connections: l.Connections, PerClient: l.ConnectionsPerClient, Short: short,
			Rate: l.RatePerSecond, RatePerClient: l.RatePerClient,
		},
		bytesPerFlow: l.BytesPerFlow,
		flows:        flows.Limits{MaxDuration: seconds(l.MaxDurationSeconds), Idle: seconds(l.IdleTimeoutSeconds)},
		headBytes:    l.HeadBytes,
		helloBytes:   min(l.HelloBytes, wire.MaxHello),
		headTimeout:  seconds(l.HeadTimeoutSeconds),
		helloTimeout: seconds(l.HelloTimeoutSeconds),
	}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

package main

import (
	"context"
	"net/netip"
	"strings"
	"sync"

	"egressd/gate/handover"
	"egressd/internal/cli"
	"egressd/internal/run/trail"
	"egressd/sandbox/process"
)

// remote is the run's session with a daemon, where --egressd asks for one.
type remote struct {
	mu      sync.Mutex
	session *handover.Remote // nil: there is none
}

// socketPath reports the PATH of unix:PATH, "" for anything else.
func socketPath(addr string) string {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return ""
	}
	return path
}

// handOver opens the session that serves this run's doors.
func (s *session) handOver(ctx context.Context, own []netip.AddrPort, b *process.Backend) (process.DoorServer, error) {
	o := handover.Offer{
		Version: cli.Version(), Session: s.trail.Session, Isolation: b.Isolation(), ArgvHash: trail.ArgvHash(s.opts.argv),
		Documents: s.docs, HostPorts: s.opts.gate.HostPorts, Own: own,
		Events: b.Gate.Events, Ask: b.Gate.Ask, Lost: s.lost, Log: b.Gate.Log,
	}
	for _, secret := range s.policy.Secrets() {
		if placeholder, value, ok := s.secrets.Value(secret.Env); ok {
			o.Secrets = append(o.Secrets, handover.Secret{Env: secret.Env, Placeholder: placeholder, Value: value})
		}
	}
	r, err := handover.Dial(ctx, socketPath(s.opts.egressd), o)
	if err != nil {
		return nil, err
	}
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	s.remote.session = r
	return r, nil
}

// lost tells the person that the daemon is gone. The program goes on.
func (s *session) lost(err error) {
	s.Say("launch: the egressd that serves this run is gone (%v): nothing leaves the sandbox any more\n", err)
}

// close ends the session and reports what the run's record lacks.
func (r *remote) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == nil {
		return nil
	}
	return r.session.Close()
}

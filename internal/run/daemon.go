package run

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

// daemon is the run's session with the egressd of --egressd.
type daemon struct {
	mu      sync.Mutex
	session *handover.Client // nil: there is none
}

// socketPath reports the PATH of unix:PATH, or "" for anything else.
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
		Version: cli.Version(), Session: s.trail.Session, Isolation: b.Isolation(), ArgvHash: trail.ArgvHash(s.opts.Argv),
		Documents: s.docs, HostPorts: s.opts.Policy.HostPorts, Own: own,
		Events: b.Gate.Events, Ask: b.Gate.Ask, Lost: s.lost, Log: b.Gate.Log,
	}
	for _, secret := range s.policy.Secrets() {
		if placeholder, value, ok := s.secrets.Value(secret.Env); ok {
			o.Secrets = append(o.Secrets, handover.Secret{Env: secret.Env, Placeholder: placeholder, Value: value})
		}
	}
	r, err := handover.Dial(ctx, socketPath(s.opts.Daemon), o)
	if err != nil {
		return nil, err
	}
	s.daemon.mu.Lock()
	defer s.daemon.mu.Unlock()
	s.daemon.session = r
	return r, nil
}

// lost says that the daemon is gone. The program goes on.
func (s *session) lost(err error) {
	s.Say("launch: the egressd that serves this run is gone (%v): nothing leaves the sandbox any more\n", err)
}

// close ends the session. The error says what the run's record lacks.
func (d *daemon) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == nil {
		return nil
	}
	return d.session.Close()
}

package process

import (
	"context"
	"net/netip"
	"os"
	"sync"

	"egressd/gate"
	"egressd/gate/handover"
	"egressd/sandbox/process/control"
)

// newKeeper prepares who serves the doors of one run; nothing is served yet.
func (b *Backend) newKeeper(ctx context.Context, ln []published) (Keeper, error) {
	var own []netip.AddrPort
	for _, p := range ln {
		own = append(own, p.addr)
	}
	if b.Keeper != nil {
		return b.Keeper(ctx, own)
	}
	g, err := gate.New(gate.Config{
		Policy: b.Policy, Resolver: b.Resolver, Events: b.Events, Log: b.log(), Session: b.Session, Isolation: isolationNetns,
		Ask: b.Ask, SecretValue: b.SecretValue, RootCAs: b.RootCAs, Own: own,
	})
	if err != nil {
		return nil, err
	}
	return keeperHere{g}, nil
}

// keeperHere is a gate in this process.
type keeperHere struct{ *gate.Gate }

func (k keeperHere) Open(ctx context.Context, wg *sync.WaitGroup, s handover.Sockets) error {
	defer s.Close() //nolint:errcheck // the doors are copies
	doors, err := s.Doors()
	if err != nil {
		return err
	}
	wg.Go(func() { _ = k.Serve(ctx, doors) }) // a door that closes early is logged, and refuses
	return nil
}

// passedSockets names the descriptors that the init passed, in the order that
// control.DoorsReady tells. Where it passed too few, some are nil.
func passedSockets(ready *control.DoorsReady, fds []*os.File) handover.Sockets {
	take := func() *os.File {
		if len(fds) == 0 {
			return nil
		}
		f := fds[0]
		fds = fds[1:]
		return f
	}
	s := handover.Sockets{Explicit: take(), DNSTCP: take(), DNSUDP: take()}
	if ready.Refusals {
		s.Refusals = take()
	}
	for range ready.Transparent {
		s.Transparent = append(s.Transparent, take())
	}
	for _, port := range ready.Localhost {
		s.Localhost = append(s.Localhost, handover.LocalPort{Port: port, File: take()})
	}
	return s
}

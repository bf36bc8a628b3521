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

// newDoorServer makes the server of the doors of one run; nothing is served yet.
func (b *Backend) newDoorServer(ctx context.Context, ln []published) (DoorServer, error) {
	var own []netip.AddrPort
	for _, p := range ln {
		own = append(own, p.addr)
	}
	if b.DoorServer != nil {
		return b.DoorServer(ctx, own)
	}
	c := b.Gate
	c.Isolation, c.Own = isolationNetns, own
	g, err := gate.New(c)
	if err != nil {
		return nil, err
	}
	return localGate{g}, nil
}

// localGate is a gate of this process that serves the doors.
type localGate struct{ *gate.Gate }

// Open implements DoorServer.
func (l localGate) Open(ctx context.Context, wg *sync.WaitGroup, s handover.Sockets) error {
	defer s.Close() //nolint:errcheck // the doors are copies
	doors, err := s.Doors()
	if err != nil {
		return err
	}
	wg.Go(func() { _ = l.Serve(ctx, doors) }) // a door that closes early is logged, and refuses
	return nil
}

// passedSockets sorts the descriptors that the init passed, in the order that
// control.DoorsReady defines. If there are too few, some are nil.
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

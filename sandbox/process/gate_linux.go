package process

import (
	"fmt"
	"net"
	"os"

	"egressd/internal/gate"
	"egressd/policy"
	"egressd/sandbox/process/control"
)

// newGate prepares the engine of one run; nothing is served yet.
func (b *Backend) newGate(ln []published) (*gate.Gate, error) {
	c := gate.Config{
		Policy: b.Policy, Resolver: b.Resolver, Events: b.Events, Log: b.log(), Session: b.Session, Isolation: isolationNetns,
		Ask: b.Ask, SecretValue: b.SecretValue, RootCAs: b.RootCAs,
	}
	for _, p := range ln {
		c.Own = append(c.Own, p.addr)
	}
	return gate.New(c)
}

// passedDoors makes doors of the descriptors that the init passed, in the order
// that control.DoorsReady tells. The descriptors stay the caller's.
func passedDoors(ready *control.DoorsReady, fds []*os.File) (d gate.Doors, err error) {
	rest := fds
	take := func() *os.File {
		if len(rest) == 0 {
			return nil
		}
		f := rest[0]
		rest = rest[1:]
		return f
	}
	defer func() {
		if err != nil {
			_ = d.Close() // they were never used
		}
	}()
	explicit, err := listener(take())
	if err != nil {
		return d, fmt.Errorf("proxy door: %w", err)
	}
	d.Explicit = []net.Listener{explicit}
	if d.DNSTCP, err = listener(take()); err != nil {
		return d, fmt.Errorf("dns door: %w", err)
	}
	if d.DNSUDP, err = packetConn(take()); err != nil {
		return d, fmt.Errorf("dns door: %w", err)
	}
	if ready.Refusals {
		if d.Refusals, err = dupFile(take()); err != nil {
			return d, err
		}
	}
	for range ready.Transparent {
		ln, err := listener(take())
		if err != nil {
			return d, fmt.Errorf("transparent door: %w", err)
		}
		d.Transparent = append(d.Transparent, ln)
	}
	return d, fixedDoors(&d, ready.Localhost, take)
}

// fixedDoors adds the host's ports that the inside sees as its own.
func fixedDoors(d *gate.Doors, ports []uint16, take func() *os.File) error {
	if len(ports) == 0 {
		return nil
	}
	host, err := policy.ParseHost("host.internal")
	if err != nil {
		return err
	}
	for _, port := range ports {
		ln, err := listener(take())
		if err != nil {
			return fmt.Errorf("localhost:%d inside: %w", port, err)
		}
		d.Fixed = append(d.Fixed, gate.Fixed{Listener: ln, Host: host, Port: port})
	}
	return nil
}

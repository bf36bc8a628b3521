package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"egressd/event"
	"egressd/netns"
	"egressd/policy"
)

// Doors are the sockets that a gate serves. Nil fields are absent.
type Doors struct {
	Explicit    []net.Listener // CONNECT, HTTP, SOCKS
	Transparent []net.Listener // captured TCP
	DNSTCP      net.Listener
	DNSUDP      net.PacketConn
	Refusals    *os.File // packets that the capture rules refused; see netns.ServeRefusals
	Fixed       []Fixed
}

// HostInternal is the name by which programs in a sandbox reach the loopback of
// the machine around it.
const HostInternal = "host.internal"

// Fixed is a listener that stands for one destination, such as a port of
// HostInternal.
type Fixed struct {
	Listener net.Listener
	Host     policy.Host
	Port     uint16
}

// Close closes every door. It is for doors that were never served.
func (d Doors) Close() error {
	var errs []error
	for _, ln := range append(append([]net.Listener{d.DNSTCP}, d.Explicit...), d.Transparent...) {
		if ln != nil {
			errs = append(errs, ln.Close())
		}
	}
	for _, f := range d.Fixed {
		errs = append(errs, f.Listener.Close())
	}
	if d.DNSUDP != nil {
		errs = append(errs, d.DNSUDP.Close())
	}
	if d.Refusals != nil {
		errs = append(errs, d.Refusals.Close())
	}
	return errors.Join(errs...)
}

// door is one way in, and how it is served until ctx ends.
type door struct {
	name  string
	serve func(ctx context.Context) error
}

// Serve serves d until ctx ends. It closes every socket of d, and returns only
// after every goroutine it started has exited. A door that closes before its
// time is logged, and the others go on: what comes to it is refused. The error
// joins the errors of such doors. Serve may be called more than once, each time
// with other doors.
func (g *Gate) Serve(ctx context.Context, d Doors) error {
	doors := g.doors(d)
	errs := make([]error, len(doors))
	var wg sync.WaitGroup
	for i, door := range doors {
		wg.Go(func() { errs[i] = g.watch(ctx, door) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (g *Gate) doors(d Doors) []door {
	var doors []door
	add := func(name string, serve func(ctx context.Context) error) { doors = append(doors, door{name, serve}) }
	for _, ln := range d.Explicit {
		add("proxy", func(ctx context.Context) error { return g.proxy.Serve(ctx, ln) })
	}
	for _, ln := range d.Transparent {
		add("transparent", func(ctx context.Context) error { return g.proxy.ServeTransparent(ctx, ln) })
	}
	if d.DNSUDP != nil || d.DNSTCP != nil {
		add("dns", func(ctx context.Context) error { return g.dns.Serve(ctx, d.DNSUDP, d.DNSTCP) })
	}
	if d.Refusals != nil {
		add("refusals", func(ctx context.Context) error { return netns.ServeRefusals(ctx, d.Refusals, g.refused) })
	}
	for _, f := range d.Fixed {
		add("localhost", func(ctx context.Context) error { return g.proxy.ServeFixed(ctx, f.Listener, f.Host, f.Port) })
	}
	return doors
}

// watch serves one door and reports why it closed before ctx ended.
func (g *Gate) watch(ctx context.Context, d door) error {
	err := d.serve(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	g.log.Error("a door closed early; what comes to it is refused", slog.String("door", d.name), slog.Any("error", err))
	return fmt.Errorf("%s door: %w", d.name, err)
}

// refused records one packet that the capture rules refused, or the number of
// those that came too fast to be recorded one by one.
func (g *Gate) refused(r netns.Refusal) {
	if g.proxy.Events == nil {
		return
	}
	e := event.Event{
		Session: g.proxy.Session, Isolation: g.proxy.Isolation, Policy: g.proxy.Policy.Load().Digest(),
		Body: &event.Packet{Proto: r.Proto, Dst: r.Dst, Port: r.Port, Src: r.Src, Count: r.Count},
	}
	if err := g.proxy.Events.Emit(e); err != nil {
		g.log.Error("a refused packet was not recorded", slog.Any("error", err))
	}
}

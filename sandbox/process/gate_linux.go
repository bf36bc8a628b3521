package process

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/netns"
	"egressd/policy"
	"egressd/proxy"
	"egressd/sandbox/process/control"
)

// gate is the engine behind the doors of one run.
type gate struct {
	proxy  *proxy.Server
	dns    *dnsfilter.Server
	bundle []byte // what inside must trust; nil without interception
	log    *slog.Logger
}

// newGate prepares the engine; nothing is served yet.
func (b *Backend) newGate(ln []published) (*gate, error) {
	pins, err := dnsfilter.NewPins(netip.Prefix{})
	if err != nil {
		return nil, err
	}
	e := engine{
		policy: b.Policy, resolver: b.Resolver, events: b.Events, log: b.log(), session: b.Session, isolation: isolationNetns,
		ask: b.Ask, secretValue: b.SecretValue, rootCAs: b.RootCAs,
	}
	g := &gate{log: b.log()}
	if g.proxy, g.bundle, err = e.proxy(); err != nil {
		return nil, err
	}
	g.proxy.Names = pins
	for _, p := range ln {
		g.proxy.Own = append(g.proxy.Own, p.addr)
	}
	g.dns = &dnsfilter.Server{
		Policy: g.proxy.Policy, Resolver: b.Resolver, Pins: pins, Events: b.Events, Log: b.log(),
		Session: b.Session, Isolation: isolationNetns, AskLater: b.Ask != nil,
	}
	return g, nil
}

// serve serves the descriptors that the init passed, in the order that
// control.DoorsReady tells. It returns once every door is being served; wg counts what
// it started.
func (g *gate) serve(ctx context.Context, wg *sync.WaitGroup, d *control.DoorsReady, fds []*os.File) error {
	rest := fds
	take := func() *os.File {
		if len(rest) == 0 {
			return nil
		}
		f := rest[0]
		rest = rest[1:]
		return f
	}
	explicit, err := listener(take())
	if err != nil {
		return fmt.Errorf("proxy door: %w", err)
	}
	wg.Go(func() { g.watch("proxy", ctx, g.proxy.Serve(ctx, explicit)) })
	dnsTCP, err := listener(take())
	if err != nil {
		return fmt.Errorf("dns door: %w", err)
	}
	dnsUDP, err := packetConn(take())
	if err != nil {
		dnsTCP.Close()
		return fmt.Errorf("dns door: %w", err)
	}
	wg.Go(func() { g.watch("dns", ctx, g.dns.Serve(ctx, dnsUDP, dnsTCP)) })
	if d.Refusals {
		f := take()
		if f == nil {
			return errMissing
		}
		log, err := dupFile(f)
		if err != nil {
			return err
		}
		wg.Go(func() { g.watch("refusals", ctx, netns.ServeRefusals(ctx, log, g.refused)) })
	}
	for range d.Transparent {
		ln, err := listener(take())
		if err != nil {
			return fmt.Errorf("transparent door: %w", err)
		}
		wg.Go(func() { g.watch("transparent", ctx, g.proxy.ServeTransparent(ctx, ln)) })
	}
	return g.serveLocalhost(ctx, wg, d.Localhost, take)
}

// serveLocalhost serves the host's ports that the inside sees as its own.
func (g *gate) serveLocalhost(ctx context.Context, wg *sync.WaitGroup, ports []uint16, take func() *os.File) error {
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
		wg.Go(func() { g.watch("localhost", ctx, g.proxy.ServeFixed(ctx, ln, host, port)) })
	}
	return nil
}

// watch reports a door that closed before its time. What comes to it then is
// refused.
func (g *gate) watch(door string, ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		g.log.Error("a door closed early; what comes to it is refused", slog.String("door", door), slog.Any("error", err))
	}
}

// refused records one packet that the capture rules refused.
func (g *gate) refused(r netns.Refusal) {
	if g.proxy.Events == nil {
		return
	}
	e := event.Event{
		Type: event.NetworkConnected, Session: g.proxy.Session, Isolation: g.proxy.Isolation,
		Door: event.DoorKernel, Decision: event.Blocked, Reason: policy.ReasonProtocol.String(),
		Proto: r.Proto, Port: r.Port, Policy: g.proxy.Policy.Load().Digest(),
	}
	if r.Dst.IsValid() {
		e.Host, e.Addr = r.Dst.String(), r.Dst.String()
	}
	if r.Src.IsValid() {
		e.Client = r.Src.String()
	}
	if err := g.proxy.Events.Emit(e); err != nil {
		g.log.Error("a refused packet was not recorded", slog.Any("error", err))
	}
}

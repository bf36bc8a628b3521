package daemon

import (
	"context"
	"fmt"
	"sync"

	"egressd/gate"
	"egressd/gate/handover"
	"egressd/internal/daemon/metrics"
)

// control is one control socket and what launchers handed over there.
type control struct {
	*handover.Server
	of *policyGate // the ceiling
}

// prepareControl makes the server of every control socket.
func (d *daemon) prepareControl() {
	ids := new(sync.Map)
	for _, n := range d.policies {
		ids.Store(n.source.Name, struct{}{}) // events of the daemon's own doors have it
	}
	for i := range d.sockets.all {
		s := &d.sockets.all[i]
		if s.kind != kindControl {
			continue
		}
		n := d.find(s.policyName())
		d.controls = append(d.controls, control{of: n, Server: &handover.Server{
			Name: n.source.Name, Ceiling: n.current, Resolver: n.resolver, Events: n.sink, Own: d.sockets.own,
			RootCAs: d.c.RootCAs, Log: d.log.With("policy", n.source.Name), Took: d.metrics.Took, Version: d.c.Version, IDs: ids,
		}})
		s.control = len(d.controls)
	}
}

// serveControl serves the launchers that connect to s.
func (d *daemon) serveControl(s socket) {
	c := d.controls[s.control-1]
	done := d.metrics.Gate(c.of.source.Name, func() (sum metrics.Stats) {
		// Totals would fall when a session ends. They are in its events.
		for _, g := range c.Gates() {
			now := g.Stats()
			sum.Connections, sum.Flows, sum.Most = sum.Connections+now.Connections, sum.Flows+now.Flows, sum.Most+now.Most
		}
		return sum
	})
	d.tasks.Go(func() error {
		defer done()
		if err := c.Serve(d.tasks.ctx, s.ln); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		return nil
	})
}

// sessions counts the sandboxes that launchers have handed over.
func (d *daemon) sessions() (n int) {
	for _, c := range d.controls {
		n += len(c.Gates())
	}
	return n
}

// renarrow puts n, which has changed, in force as a ceiling.
func (d *daemon) renarrow(n *policyGate) (closed int) {
	for _, c := range d.controls {
		if c.of == n {
			closed += c.Renarrow()
		}
	}
	return closed
}

// drainer is a gate, or all that was handed over at one control socket.
type drainer interface{ Drain(context.Context) error }

func (d *daemon) drainers() []drainer {
	var all []drainer
	for _, g := range d.gates() {
		all = append(all, g)
	}
	for _, c := range d.controls {
		all = append(all, c)
	}
	return all
}

// allGates lists the gates of the daemon and of every session.
func (d *daemon) allGates() []*gate.Gate {
	all := d.gates()
	for _, c := range d.controls {
		all = append(all, c.Gates()...)
	}
	return all
}

package daemon

import (
	"context"
	"sync"
	"time"

	"egressd/gate"
)

// afterDrain is the time to close the rest and write the last events.
const afterDrain = 15 * time.Second

// drain refuses new connections and waits for open flows, until Config.Drain is
// over or Config.Now is closed.
func (d *daemon) drain() {
	d.notify(d.c.Notifier.Stopping("draining"))
	limit := d.c.Drain
	d.notify(d.c.Notifier.Extend(limit + afterDrain))
	d.log.Info("draining: no new connections; open flows may finish", "limit", limit, "flows", d.flows())
	ctx, cancel := context.WithTimeout(d.tasks.ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, g := range d.drainers() {
		wg.Go(func() {
			_ = g.Drain(ctx) // what had to be closed is counted below
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	start := time.Now()
	select {
	case <-done:
	case <-d.c.Now:
		d.log.Warn("asked again to end: closing what is open", "flows", d.flows())
		cancel()
		<-done
	case <-ctx.Done():
		d.log.Warn("the time to drain is over: closing what is open", "flows", d.flows())
		<-done
	}
	d.log.Info("drained", "took", time.Since(start).Round(time.Millisecond))
}

// gates lists every gate of the daemon itself.
func (d *daemon) gates() []*gate.Gate {
	all := []*gate.Gate{d.unassigned.gate}
	for _, n := range d.policies {
		all = append(all, n.gate)
	}
	return append(all, d.routes.gates(nil)...)
}

func (d *daemon) flows() (n int) {
	for _, g := range d.allGates() {
		n += g.Stats().Flows
	}
	return n
}

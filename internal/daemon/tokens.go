package daemon

import (
	"context"
	"sync"

	"egressd/gate"
	"egressd/internal/daemon/metrics"
)

// openToken makes and runs the gate of one token under n's policy.
func (d *daemon) openToken(n *policyGate, session string) (*tokenGate, error) {
	g, err := d.newGate(n, session, nil)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(d.tasks.ctx)
	<-d.run(ctx, n.source.Name, g)
	return &tokenGate{of: n, gate: g, stop: stop}, nil
}

// run runs a gate, and shows its metrics, until ctx ends. started is closed once
// clients may be routed to the gate.
func (d *daemon) run(ctx context.Context, policyName string, g *gate.Gate) (started <-chan struct{}) {
	done := d.metrics.Gate(policyName, func() metrics.Stats { return metrics.Stats(g.Stats()) })
	c := make(chan struct{})
	open := sync.OnceFunc(func() { close(c) })
	d.tasks.Go(func() error {
		defer done()
		defer open() // it was drained already
		g.Run(ctx, open)
		return nil
	})
	return c
}

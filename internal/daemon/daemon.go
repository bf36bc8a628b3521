package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"egressd/internal/daemon/admin"
	"egressd/internal/daemon/metrics"
	"egressd/internal/daemon/watch"
	"egressd/proxy"
	"egressd/proxy/ca"
)

// daemon is one run of egressd. Fields are set while it starts and only read
// afterwards, unless they say otherwise.
type daemon struct {
	c       Config
	log     *slog.Logger
	started time.Time

	record *record
	measures
	trust   trust
	sockets sockets
	resets  proxy.Resets

	policies   []*policyGate
	unassigned *policyGate // of doors whose clients have to say which policy is theirs
	routes     *routes
	controls   []control

	state    atomic.Int32 // stateStarting, ...
	rejected rejections

	tasks tasks
}

// measures are what is counted.
type measures struct {
	metrics *metrics.Metrics
	asked   asked // DNS servers
}

// tasks are the goroutines that serve until ctx ends. The first error of one ends
// ctx, and with it the daemon.
type tasks struct {
	*errgroup.Group
	ctx context.Context
}

// States of a daemon.
const (
	stateStarting int32 = iota
	stateServing
	stateDraining
)

// Run serves c until ctx ends, and then drains: new connections are refused and
// open flows finish, until c.Drain is over or c.Now is closed. It returns after
// every goroutine has exited and every event has been written. Nil: ctx ended; a
// *ConfigError: it did not start, and what must be changed.
func Run(ctx context.Context, c Config) error {
	d := &daemon{c: c, log: c.Log, started: time.Now(), trust: trust{authority: new(ca.Authority), path: c.CABundle}}
	if err := d.defaults(); err != nil {
		return err
	}
	if err := d.open(context.WithoutCancel(ctx)); err != nil { // ctx may have ended already: then drain at once, in order
		return errors.Join(err, d.close())
	}
	err := d.serve(ctx)
	d.flush()
	d.stopped(err)
	return errors.Join(err, d.close())
}

// defaults fills in what nil means.
func (d *daemon) defaults() error {
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.c.Getenv == nil {
		d.c.Getenv = func(string) string { return "" }
	}
	if d.c.ReadFile == nil {
		d.c.ReadFile = watch.ReadFile
	}
	d.metrics = metrics.New(d.c.Version)
	d.asked.count = d.metrics.DNSServer
	d.metrics.Room(proxy.Room(d.c.Memory))
	d.routes = &routes{d: d}
	return d.c.Validate()
}

// open reads and opens everything; nothing is served before all of it is there.
func (d *daemon) open(ctx context.Context) (err error) {
	if d.c.Harden && !d.c.Traceable {
		harden(d.log)
	}
	d.c.Log = d.log
	if d.record, err = openRecord(&d.c, d.metrics); err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	if d.c.Harden {
		confine(d.log)
	}
	if err := d.prepare(); err != nil {
		return err
	}
	d.routes.sort()
	return d.loadFirst()
}

// serve runs every part until ctx ends and the drain is over, or until one of
// them fails.
func (d *daemon) serve(ctx context.Context) error {
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d.tasks.Group, d.tasks.ctx = errgroup.WithContext(serve)

	// The admin address answers until everything else is gone.
	answer, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	admins, answering := errgroup.WithContext(answer)
	d.serveAdmin(answering, admins)

	names, stopNames := context.WithCancel(d.tasks.ctx)
	defer stopNames()
	d.serveDoors(names)
	reloads, stopReloads := context.WithCancel(d.tasks.ctx)
	defer stopReloads()
	d.tasks.Go(func() error { return d.reloads(reloads) })
	d.tasks.Go(func() error { d.watchdog(d.tasks.ctx); return nil })
	d.tasks.Go(func() error { d.record.probe(d.tasks.ctx); return nil })
	d.tasks.Go(func() error { d.record.sync(d.tasks.ctx, d.c.Sync); return nil })
	d.ready()

	select {
	case <-ctx.Done():
		d.state.Store(stateDraining)
		stopNames()
		d.drain()
	case <-d.tasks.ctx.Done():
	case <-answering.Done():
	}
	d.state.Store(stateDraining)
	stopReloads()
	stop()
	err := d.tasks.Wait()
	stopAdmin()
	return errors.Join(err, admins.Wait())
}

// serveDoors starts every gate, and then every door. DNS doors end with names.
func (d *daemon) serveDoors(names context.Context) {
	for _, n := range append(slices.Clone(d.policies), d.unassigned) {
		<-d.run(d.tasks.ctx, n.source.Name, n.gate)
	}
	for _, s := range d.sockets.all {
		s.serve(d, names)
	}
}

// serveAdmin answers at every admin address until ctx ends.
func (d *daemon) serveAdmin(ctx context.Context, admins *errgroup.Group) {
	d.metrics.Probe(metrics.Probes{
		Ready: d.Ready, Sessions: d.sessions, Written: d.record.writer.Written, Room: d.record.writer.Room,
	})
	for _, s := range d.sockets.all {
		if s.kind != kindAdmin {
			continue
		}
		server := &admin.Server{Ready: d.Ready, Details: d.details, Unused: d.metrics.Unused, Metrics: d.metrics.Handler(), Log: d.log}
		admins.Go(func() error {
			if err := server.Serve(ctx, s.ln); err != nil {
				return fmt.Errorf("%s: %w", s.what, err)
			}
			return nil
		})
	}
}

// Ready reports why the daemon accepts no traffic, nil if it does.
func (d *daemon) Ready() error {
	switch d.state.Load() {
	case stateServing:
		return d.record.failing()
	case stateDraining:
		return errors.New("draining: no new connections are taken")
	}
	return errors.New("starting")
}

// ready reports that every door is open and every policy loaded.
func (d *daemon) ready() {
	for _, s := range d.sockets.all {
		d.log.Info("listening", "door", s.kind, "addr", s.addr(), "policy", s.judge(d))
	}
	d.emit(startedEvent(d.c.Version))
	d.state.Store(stateServing)
	d.notify(d.c.Notifier.Ready(d.status()))
	d.log.Info("ready", "version", d.c.Version, "policies", len(d.policies))
}

// status is the line that the service manager shows.
func (d *daemon) status() string {
	if n := d.rejected.count(); n > 0 {
		return fmt.Sprintf("serving %d policies; %d files were rejected, the ones before are in force", len(d.policies), n)
	}
	return fmt.Sprintf("serving %d policies", len(d.policies))
}

// notify logs that the service manager could not be notified.
func (d *daemon) notify(err error) {
	if err != nil {
		d.log.Warn("the service manager could not be notified", "err", err)
	}
}

// watchdog notifies the service manager that the daemon is alive, as long as its
// locks and gates answer.
func (d *daemon) watchdog(ctx context.Context) {
	d.c.Notifier.Watchdog(ctx, func() error {
		d.routes.gates(nil)
		for _, n := range d.policies {
			n.gate.Stats()
		}
		return nil
	}, d.notify)
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"egressd/event"
	"egressd/event/flood"
	"egressd/internal/daemon/metrics"
)

// record is the events file and its writer.
type record struct {
	path   string // "-": the standard output
	writer *event.Writer
	audit  event.Sink // counts what the writer accepted and refused
	log    *slog.Logger

	archive *archive // nil: the file is not rotated by its size
}

// openRecord opens the events file; the caller closes the record.
func openRecord(c *Config, m *metrics.Metrics) (*record, error) {
	r := &record{path: c.Events, log: c.Log}
	file := c.Stdout
	if r.path == "" {
		r.path = "-"
	}
	if r.path != "-" {
		var err error
		if file, err = event.Open(r.path); err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
	} else if file == nil {
		return nil, misconfigured("--events -: there is no standard output")
	}
	r.writer = &event.Writer{W: file, Resource: c.Resource, Log: c.Log}
	if c.Resource == nil {
		r.writer.Resource = map[string]string{}
	}
	r.audit = m.Audit(r.writer)
	if c.Rotate.Size > 0 {
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(misconfigured("--events-rotate: %s is not a file: name one with --events", r.path), r.close())
		}
		r.archive = &archive{path: r.path, most: c.Rotate.Size, keep: c.Rotate.Keep, log: c.Log}
		r.writer.Rotate(c.Rotate.Size, r.archive.replace)
	}
	return r, nil
}

// reopen opens the events file again, after the old one was moved away.
func (r *record) reopen() error {
	if r.path == "-" {
		return nil
	}
	next, err := event.Open(r.path)
	if err != nil {
		return fmt.Errorf("--events: %w: events still go to the file that was open", err)
	}
	old, err := r.writer.Reopen(next)
	if old == nil {
		return errors.Join(err, next.Close())
	}
	return errors.Join(err, old.(io.Closer).Close())
}

// close writes what is queued.
func (r *record) close() error {
	if r == nil {
		return nil
	}
	err := r.writer.Close()
	if r.path != "-" {
		err = errors.Join(err, r.writer.W.(io.Closer).Close())
	}
	if r.archive != nil {
		r.archive.retiring.Wait()
	}
	return err
}

// sync makes the record durable every so often, until ctx ends. Zero: never; the
// system does when it likes, and closing does.
func (r *record) sync(ctx context.Context, every time.Duration) {
	if every <= 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = r.writer.Sync() // the writer tells the log
		}
	}
}

// failing reports why nothing can be recorded; nil: it can be.
func (r *record) failing() error {
	if err := r.writer.Failing(); err != nil {
		return fmt.Errorf("events cannot be recorded, so everything is denied: %w", err)
	}
	return nil
}

// probeEvery is how often a record that cannot be written is tried without an event.
const probeEvery = time.Second

// probe notices that the record can be written again, also when no client comes, until
// ctx ends.
func (r *record) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = r.writer.Unavailable() // which logs what changes
		}
	}
}

// volume bounds what one policy writes to the record.
type volume struct {
	repeats   *flood.Sink
	exhausted func() string // why the policy's quota is used up; "": it is not
}

// record makes the sink of n's events: what denies over and over is summed up, and
// what is written counts for n's quota. Metrics count each denial.
func (n *policyGate) record(d *daemon) {
	log := d.log
	if n.source.Name != "" {
		log = log.With("policy", n.source.Name)
	}
	q := d.c.Quota
	var share event.Sink
	share, n.volume.exhausted = d.record.writer.Share(q.Rate, q.Burst, q.Total, log)
	n.volume.repeats = &flood.Sink{To: d.metrics.Audit(share)}
	n.sink = event.Fanout{n.volume.repeats, d.metrics.Sink(n.source.Name)}
	d.metrics.Volume(n.source.Name, func() metrics.Volume {
		return metrics.Volume{Summed: n.volume.repeats.Summed(), Exhausted: n.volume.exhausted() != ""}
	})
}

// volumes lists what bounds the record of each policy.
func (d *daemon) volumes() (all []volume) {
	for _, n := range append(slices.Clone(d.policies), d.unassigned) {
		if n != nil && n.volume.repeats != nil {
			all = append(all, n.volume)
		}
	}
	return all
}

// flush records the denials that are summed up. What cannot be recorded now is kept
// for later.
func (d *daemon) flush() {
	for _, v := range d.volumes() {
		if err := v.repeats.Flush(); err != nil {
			d.log.Error("denials are not recorded yet", "err", err)
		}
	}
}

// close ends the record and every socket that was not served.
func (d *daemon) close() error {
	for _, s := range d.sockets.all {
		s.close()
	}
	var errs []error
	for _, v := range d.volumes() {
		errs = append(errs, v.repeats.Close())
	}
	return errors.Join(append(errs, d.record.close())...)
}

func startedEvent(version string) event.Event {
	return event.Event{Body: &event.DaemonStarted{Version: version}}
}

// stopped records the end of the daemon, and why if it was not asked to end.
func (d *daemon) stopped(why error) {
	end := &event.DaemonStopped{Version: d.c.Version, Duration: time.Since(d.started)}
	if why != nil {
		end.Error = why.Error()
	}
	d.emit(event.Event{Body: end})
}

// emit records an event of the daemon itself. If it cannot, it logs that and goes
// on: ending would make nothing safer, since no flow passes either while nothing
// can be recorded.
func (d *daemon) emit(e event.Event) {
	if err := d.record.audit.Emit(e); err != nil {
		d.log.Error("an event was not recorded", "type", e.Type(), "err", err)
	}
}

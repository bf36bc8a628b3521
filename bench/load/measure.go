package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// figure is what one round of one measurement gave for one contestant.
type figure struct {
	value float64       // in the measurement's unit
	cpu   time.Duration // of the proxy, for each operation
	p50   time.Duration // latency, where that is measured
	p99   time.Duration
}

// bench is what the rounds share.
type bench struct {
	o     *origin
	hello []byte
	each  time.Duration // one round of one contestant
	idle  int           // tunnels
}

// measurement is one thing that is measured, round by round.
type measurement struct {
	name string
	unit string
	run  func(b *bench, ctx context.Context, c *contestant) (figure, error)
	once bool // one round is enough
	http bool // it takes a proxy for HTTP
	deny bool // it takes one that refuses
}

func measurements() []measurement {
	return []measurement{
		{name: "connect", unit: "per_second", run: connects(func(*bench) []byte { return []byte("x") })},
		{name: "connect_tls", unit: "per_second", run: connects(func(b *bench) []byte { return b.hello })},
		{name: "refused", unit: "per_second", run: (*bench).refusals, deny: true},
		{name: "ping_1", unit: "per_second", run: pings(1)},
		{name: "ping_200", unit: "per_second", run: pings(200)},
		{name: "http_get", unit: "per_second", run: (*bench).gets, http: true},
		{name: "bulk_1", unit: "mb_per_second", run: bulk(1)},
		{name: "bulk_8", unit: "mb_per_second", run: bulk(8)},
		{name: "connect_latency", unit: "per_second", run: (*bench).connectLatency},
		{name: "http_latency", unit: "per_second", run: (*bench).httpLatency, http: true},
		{name: "idle_memory", unit: "kib_per_tunnel", run: (*bench).idleMemory, once: true},
	}
}

const workers = 64 // clients at a time where rates are measured

// timed runs work in n goroutines, which end when until is over, after b.each;
// what is under way then is finished. It reports what they counted in a second.
// The first error ends the round.
func (b *bench) timed(ctx context.Context, c *contestant, n int, work func(until context.Context, done *atomic.Int64) error) (figure, error) {
	before, err := c.CPU()
	if err != nil {
		return figure{}, err
	}
	until, cancel := context.WithTimeout(ctx, b.each)
	defer cancel()
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n)
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			if err := work(until, &done); err != nil {
				errs[i] = err
				cancel()
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return figure{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	after, err := c.CPU()
	if err != nil {
		return figure{}, err
	}
	if done.Load() == 0 {
		return figure{}, fmt.Errorf("%s: nothing was done in %v", c.Name, took)
	}
	return figure{value: float64(done.Load()) / took.Seconds(), cpu: (after - before) / time.Duration(done.Load())}, nil
}

func connects(payload func(*bench) []byte) func(*bench, context.Context, *contestant) (figure, error) {
	return func(b *bench, ctx context.Context, c *contestant) (figure, error) {
		target := b.o.answers.Addr().String()
		return b.timed(ctx, c, workers, func(until context.Context, done *atomic.Int64) error {
			for until.Err() == nil {
				if err := c.setUp(ctx, target, payload(b)); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
}

func (b *bench) gets(ctx context.Context, c *contestant) (figure, error) {
	return b.timed(ctx, c, workers, func(until context.Context, done *atomic.Int64) error {
		g, err := c.getter(ctx, b.o.http.Addr().String())
		if err != nil {
			return err
		}
		defer g.conn.Close()
		for until.Err() == nil {
			if err := g.get(); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
}

// bulk reads through n tunnels. Its operation is a megabyte (a million bytes).
func bulk(n int) func(*bench, context.Context, *contestant) (figure, error) {
	return func(b *bench, ctx context.Context, c *contestant) (figure, error) {
		conns := make([]net.Conn, n)
		for i := range conns {
			conn, err := c.tunnel(ctx, b.o.source.Addr().String())
			if err != nil {
				return figure{}, err
			}
			defer conn.Close()
			conns[i] = conn
		}
		var next, bytes atomic.Int64
		return b.timed(ctx, c, n, func(until context.Context, done *atomic.Int64) error {
			conn := conns[next.Add(1)-1]
			buf := make([]byte, 256<<10)
			for until.Err() == nil {
				k, err := conn.Read(buf)
				if err != nil {
					return err
				}
				const mb = 1e6
				sum := bytes.Add(int64(k))
				done.Add(sum/mb - (sum-int64(k))/mb)
			}
			return nil
		})
	}
}

// latencies repeats op, one at a time, and reports its quantiles.
func (b *bench) latencies(ctx context.Context, c *contestant, op func() error) (figure, error) {
	var took []time.Duration
	f, err := b.timed(ctx, c, 1, func(until context.Context, done *atomic.Int64) error {
		for until.Err() == nil {
			start := time.Now()
			if err := op(); err != nil {
				return err
			}
			took = append(took, time.Since(start))
			done.Add(1)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	slices.Sort(took)
	f.p50, f.p99 = took[len(took)/2], took[(len(took)-1)*99/100]
	return f, nil
}

func (b *bench) connectLatency(ctx context.Context, c *contestant) (figure, error) {
	return b.latencies(ctx, c, func() error { return c.setUp(ctx, b.o.answers.Addr().String(), []byte("x")) })
}

func (b *bench) httpLatency(ctx context.Context, c *contestant) (figure, error) {
	g, err := c.getter(ctx, b.o.http.Addr().String())
	if err != nil {
		return figure{}, err
	}
	defer g.conn.Close()
	return b.latencies(ctx, c, g.get)
}

// settleFor is how long a proxy may take to give back what opening tunnels has
// cost it.
const settleFor = 3 * time.Second

// idleExchanges is how often something goes there and back in a tunnel before
// it is idle: what a proxy needs for that it may keep.
const idleExchanges = 4

// idleMemory opens tunnels that carry a little each way and then nothing, and
// compares what is resident with before; kernel memory is not in it. Processor time is that
// of a set-up beside them.
func (b *bench) idleMemory(ctx context.Context, c *contestant) (figure, error) {
	before, err := c.Memory()
	if err != nil {
		return figure{}, err
	}
	for range b.idle {
		conn, err := c.tunnel(ctx, b.o.answers.Addr().String())
		if err != nil {
			return figure{}, fmt.Errorf("%s: %w", c.Name, err)
		}
		defer conn.Close()
		for range idleExchanges {
			if err := exchange(conn, []byte("x")); err != nil {
				return figure{}, fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	select {
	case <-time.After(settleFor):
	case <-ctx.Done():
		return figure{}, ctx.Err()
	}
	after, err := c.Memory()
	if err != nil {
		return figure{}, err
	}
	f, err := connects(func(*bench) []byte { return []byte("x") })(b, ctx, c)
	return figure{value: float64(after-before) / 1024 / float64(b.idle), cpu: f.cpu}, err
}

// refusals asks for what no list has.
func (b *bench) refusals(ctx context.Context, c *contestant) (figure, error) {
	return b.timed(ctx, c, workers, func(until context.Context, done *atomic.Int64) error {
		for until.Err() == nil {
			conn, err := c.tunnel(ctx, "127.0.0.2:9")
			switch {
			case err == nil:
				return errors.Join(errors.New("it makes a tunnel that it should refuse"), conn.Close())
			case !strings.HasPrefix(err.Error(), answered):
				return err
			}
			done.Add(1)
		}
		return nil
	})
}

// pings sends a byte there and back, again and again, in n tunnels.
func pings(n int) func(*bench, context.Context, *contestant) (figure, error) {
	return func(b *bench, ctx context.Context, c *contestant) (figure, error) {
		conns := make([]net.Conn, n)
		for i := range conns {
			conn, err := c.tunnel(ctx, b.o.answers.Addr().String())
			if err != nil {
				return figure{}, err
			}
			defer conn.Close()
			conns[i] = conn
		}
		var next atomic.Int64
		took := make([][]time.Duration, n)
		f, err := b.timed(ctx, c, n, func(until context.Context, done *atomic.Int64) error {
			i := next.Add(1) - 1
			for until.Err() == nil {
				start := time.Now()
				if err := exchange(conns[i], []byte("x")); err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(start))
				done.Add(1)
			}
			return nil
		})
		if err != nil {
			return f, err
		}
		all := slices.Concat(took...)
		slices.Sort(all)
		f.p50, f.p99 = all[len(all)/2], all[(len(all)-1)*99/100]
		return f, nil
	}
}

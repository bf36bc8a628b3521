package dnsfilter

import (
	"bytes"
	"context"
	"net/netip"
	"runtime"

	"egressd/event"
	"egressd/internal/linux/mmsg"
)

// maxReaders bounds the goroutines that read one UDP socket.
const maxReaders = 8

// batch is what one of them needs to answer the queries that it reads at once, and is
// its own.
type batch struct {
	*mmsg.Batch
	tasks  []task
	events []event.Event
	known  hosts
}

func newBatch() *batch {
	return &batch{Batch: mmsg.NewBatch(), tasks: make([]task, mmsg.Most), events: make([]event.Event, mmsg.Most)}
}

// serveBatches reads queries from s until it is closed, one goroutine a processor.
func (r *running) serveBatches(ctx context.Context, s *mmsg.Socket) {
	for range min(runtime.GOMAXPROCS(0), maxReaders) - 1 {
		r.wg.Go(func() { r.readBatches(ctx, s) })
	}
	r.readBatches(ctx, s)
}

// readBatches answers what needs no look-up in this goroutine: nothing waits there but
// for the record. What needs one is asked upstream, all of the batch at once, and answered
// by whoever reads the replies.
//
// Threat: a client floods queries faster than they can be judged -> the socket's own
// queue fills and the kernel drops. Left over: other clients of the same socket wait.
// Threat: a client asks for names that take long to look up -> its share of look-ups
// is in flight, the rest is refused, and what needs none is answered beside them.
func (r *running) readBatches(ctx context.Context, s *mmsg.Socket) {
	b := newBatch()
	var out outbox
	for errs := 0; ; {
		n, err := s.Read(b.Batch)
		if err != nil {
			if errs++; !r.pause(ctx, "udp", errs, err) {
				return
			}
			continue
		}
		errs = 0
		for i := range n {
			b.tasks[i] = task{wire: b.Packet(i), client: b.Client(i)}
		}
		r.answerManyRecovering(b, n)
		for i := range b.tasks[:n] {
			t := &b.tasks[i]
			switch {
			case !t.later:
			case !r.inFlight.acquire(t.client.Addr()):
				b.SetReply(i, r.overloaded(t.wire, t.client))
			case t.server == nil:
				r.answerAlone(ctx, s, b.Return(i), bytes.Clone(t.wire), t.client)
			default:
				r.postpone(ctx, &later{
					run: r, socket: s, back: b.Return(i), client: t.client, wire: bytes.Clone(t.wire),
					resolver: t.server.Resolver, name: t.host,
				}, &out)
			}
		}
		s.Write(b.Batch)
		out.flush()
	}
}

// answerAlone answers a query that met a bug beside others. inFlight was acquired for it.
func (r *running) answerAlone(ctx context.Context, s *mmsg.Socket, back mmsg.Return, wire []byte, client netip.AddrPort) {
	r.wg.Go(func() {
		defer r.inFlight.release(client.Addr())
		s.Send(&back, r.answerRecovering(ctx, wire, client, false))
	})
}

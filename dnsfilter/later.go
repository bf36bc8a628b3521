package dnsfilter

import (
	"context"
	"net/netip"
	"slices"

	"egressd/internal/linux/mmsg"
	"egressd/policy"
)

// later is a query from a batch that waits for a look-up, without a goroutine. Whoever
// ends the look-up answers it: judged from scratch, by the policy of then.
type later struct {
	run      *running
	socket   *mmsg.Socket
	back     mmsg.Return
	client   netip.AddrPort
	wire     []byte
	resolver *Resolver
	name     policy.Host

	call   *call // that it waits for; nil: none. resolver.mu guards it
	result found // of the call, as is err
	err    error
}

// postpone asks for what l waits for, through out. inFlight was acquired for it.
func (r *running) postpone(ctx context.Context, l *later, out *outbox) {
	if !l.wait(ctx, out) {
		answerLaters([]*later{l})
	}
}

// wait has l wait for its call; false: it has its result.
func (l *later) wait(ctx context.Context, out *outbox) bool {
	l.resolver.mu.Lock()
	defer l.resolver.mu.Unlock()
	if !l.run.add(l) {
		l.err = gaveUp(ctx, l.name)
		return false
	}
	if l.call, l.result, l.err = l.resolver.join(l.name, out); l.call == nil {
		return false
	}
	l.call.waiters++
	l.call.laters = append(l.call.laters, l)
	return true
}

// add notes that l waits; false: Serve is ending.
func (r *running) add(l *later) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wg.Add(1)
	if r.leaving {
		return false
	}
	if r.laters == nil {
		r.laters = make(map[*later]struct{})
	}
	r.laters[l] = struct{}{}
	return true
}

// remove forgets l, which was answered.
func (r *running) remove(l *later) {
	r.mu.Lock()
	delete(r.laters, l)
	r.mu.Unlock()
	r.inFlight.release(l.client.Addr())
	r.wg.Done()
}

// leaveLaters ends the wait of all queries, because ctx is over.
func (r *running) leaveLaters(ctx context.Context) {
	r.mu.Lock()
	laters := r.laters
	r.laters, r.leaving = nil, true
	r.mu.Unlock()
	for l := range laters {
		if l.leave() {
			l.err = gaveUp(ctx, l.name)
			answerLaters([]*later{l})
		}
	}
}

// leave ends l's wait; false: its result has come.
func (l *later) leave() bool {
	l.resolver.mu.Lock()
	c := l.call
	if c == nil || c.over {
		l.resolver.mu.Unlock()
		return false
	}
	c.laters = slices.DeleteFunc(c.laters, func(other *later) bool { return other == l })
	left := l.resolver.leave(c)
	l.resolver.mu.Unlock()
	left.wait()
	return true
}

// answerLaters answers queries that have waited: all of one socket with one write to the
// record and one to the socket.
func answerLaters(laters []*later) {
	for len(laters) > 0 {
		r, s := laters[0].run, laters[0].socket
		b, _ := r.batches.Get().(*batch)
		if b == nil {
			b = newBatch()
		}
		n, rest := 0, laters[:0]
		for _, l := range laters {
			if l.run != r || l.socket != s || n == mmsg.Most {
				rest = append(rest, l)
				continue
			}
			b.tasks[n] = task{wire: l.wire, client: l.client, heard: l}
			b.SetReturn(n, &l.back)
			n++
		}
		r.answerManyRecovering(b, n)
		for i := range b.tasks[:n] {
			if t := &b.tasks[i]; t.later { // they met a bug
				b.SetReply(i, r.unjudged(t.wire, t.client, policy.ReasonInternal))
			}
		}
		s.Write(b.Batch)
		for i := range b.tasks[:n] {
			r.remove(b.tasks[i].heard)
			b.tasks[i] = task{}
		}
		b.Empty()
		r.batches.Put(b)
		laters = rest
	}
}

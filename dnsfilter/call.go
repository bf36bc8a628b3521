package dnsfilter

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/miekg/dns"

	"egressd/internal/linux/mmsg"
	"egressd/policy"
)

// call is one look-up of both families that any number of callers wait for; when the last
// of them leaves, it ends. Usually two questions over UDP and two plain replies are all:
// then no goroutine belongs to it, and the reply that is missing completes it. A family
// whose first reply is anything else goes on in a goroutine, askFamily.
// Resolver.mu guards the fields, but for result and err once the call is over.
type call struct {
	name     policy.Host
	born     time.Time
	upstream Upstream  // asked first
	families [2]family // A, AAAA
	place    int       // in Resolver.flights
	due      time.Time // when expire looks at it; zero: never
	hurried  bool      // it has addresses, and waits for the other family until due
	over     bool

	waiters int            // callers
	done    chan struct{}  // closed when it is over; nil: nobody waits there
	laters  []*later       // callers that wait without a goroutine
	running sync.WaitGroup // askFamily

	result found
	err    error
}

// family is one of the two questions of a call.
type family struct {
	waiter         // while it is asked over UDP for the first time
	records        // its result, if settled
	settled bool   // it has one
	cancel  func() // ends its askFamily; nil: there is none
}

// types are the families' questions.
var types = [2]uint16{dns.TypeA, dns.TypeAAAA}

// join finds the call for name, or starts one, whose questions are then in out. Nil: the
// rest is the result. r.mu is held.
func (r *Resolver) join(name policy.Host, out *outbox) (*call, found, error) {
	if f, err, now := r.knownLocked(name); now { // meanwhile
		return nil, f, err
	}
	if c := r.calls[name.Name()]; c != nil {
		return c, found{}, nil
	}
	if len(r.flights) >= maxCalls {
		return nil, found{}, &LookupError{Name: name.Name(), Reason: policy.ReasonOverload, Err: errBusy}
	}
	c := &call{name: name, born: time.Now()}
	if r.calls == nil {
		r.calls = make(map[string]*call)
		r.lines.hear, r.lines.guessed = r.hear, r.guessed
	}
	r.calls[name.Name()] = c
	c.place, r.flights = len(r.flights), append(r.flights, c)
	c.upstream, _ = r.preferred(c.born)
	if r.ask != nil || c.upstream.transport != "udp" {
		for i := range c.families {
			r.askOn(c, i, nil)
		}
		return c, found{}, nil
	}
	r.askBoth(c, out)
	return c, found{}, nil
}

// askBoth asks both questions of c over UDP. r.mu is held.
func (r *Resolver) askBoth(c *call, out *outbox) {
	room := make([]byte, 0, 2*(len(c.name.Name())+2+headerBytes+4+optBytes))
	r.lines.mu.Lock()
	defer r.lines.mu.Unlock()
	for i := range c.families {
		at := len(room)
		room = appendQuestion(room, c.name, types[i])
		w := &c.families[i].waiter
		w.call, w.family, w.packet = c, i, room[at:len(room):len(room)]
		if err := r.lines.enlist(c.upstream.addr, w, out); err != nil {
			r.askOn(c, i, &reply{err: err})
		}
	}
	c.due = c.born.Add(tryTimeout)
	r.wake(c.due)
}

// askOn goes on with one family of c in a goroutine; had is what it has brought. r.mu is held.
func (r *Resolver) askOn(c *call, i int, had *reply) {
	// No caller's cancellation may fail the others.
	ctx, cancel := context.WithDeadline(context.Background(), c.born.Add(lookupTimeout))
	c.families[i].cancel = cancel
	c.running.Go(func() {
		defer cancel()
		r.settle(c, i, r.askFamily(ctx, c, i, had))
	})
}

// askFamily asks until there is an answer; a bug is an upstream's failure.
//
// Threat: the server of a name that the client chose sends an answer that makes
// the parser panic, and with it ends the way out of all clients -> the panic ends here.
func (r *Resolver) askFamily(ctx context.Context, c *call, i int, had *reply) (rec records) {
	defer func() {
		if p := recover(); p != nil {
			rec = r.bug(p)
		}
	}()
	return r.family(ctx, c, types[i], had)
}

// bug is what a family brought that met one.
func (r *Resolver) bug(p any) records {
	if r.Log != nil {
		r.Log.Error("a bug in the DNS filter cost a look-up its answer", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	return records{err: errBug}
}

// settle gives one family of c its result.
func (r *Resolver) settle(c *call, i int, rec records) {
	r.mu.Lock()
	over := r.settleLocked(c, i, rec, time.Now())
	r.mu.Unlock()
	if over {
		answerCalls([]*call{c})
	}
}

// settleLocked reports whether c is over with that. r.mu is held.
//
// Some name servers drop AAAA questions: once one family has brought addresses, the other
// gets only otherFamilyWait more (RFC 8305 section 3), and nobody is blamed for it.
func (r *Resolver) settleLocked(c *call, i int, rec records, now time.Time) bool {
	f, other := &c.families[i], &c.families[1-i]
	if c.over || f.settled {
		return false
	}
	f.records, f.settled = rec, true
	if other.settled {
		r.finish(c, now)
		return true
	}
	if len(rec.addrs) > 0 {
		c.due, c.hurried = now.Add(otherFamilyWait), true
		r.wake(c.due)
	}
	return false
}

// finish makes the result of c, and puts it into the cache. r.mu is held.
func (r *Resolver) finish(c *call, now time.Time) {
	var keep time.Duration
	c.result, keep, c.err = merge(c.name, &c.families[0].records, &c.families[1].records)
	c.result.expires = now.Add(keep)
	if r.calls[c.name.Name()] == c {
		r.cache.put(c.name, entry{result: c.result, err: c.err, expires: c.result.expires}, now)
	}
	r.end(c)
}

// end takes c off the books. r.mu is held.
func (r *Resolver) end(c *call) {
	c.over = true
	last := r.flights[len(r.flights)-1]
	r.flights[c.place], last.place = last, c.place
	r.flights[len(r.flights)-1] = nil
	r.flights = r.flights[:len(r.flights)-1]
	if len(r.flights) == 0 && r.alarm.timer != nil {
		r.alarm.timer.Stop()
		r.alarm.at = time.Time{}
	}
	if r.calls[c.name.Name()] == c {
		delete(r.calls, c.name.Name())
	}
}

// answerCalls tells the callers of calls that are over.
func answerCalls(calls []*call) {
	var laters []*later
	for _, c := range calls {
		if c.done != nil {
			close(c.done)
		}
		for _, l := range c.laters {
			l.result, l.err = c.result, c.err
		}
		laters = append(laters, c.laters...)
	}
	answerLaters(laters)
}

// heard is a reply that was read.
type heard struct {
	records
	plain bool // false: a goroutine goes on with it
}

// readReply reads a plain reply; a bug is an upstream's failure, as in askFamily.
func (r *Resolver) readReply(a *reply) (h heard) {
	defer func() {
		if p := recover(); p != nil {
			h = heard{records: r.bug(p), plain: true}
		}
	}()
	if a.err == nil && a.spelled {
		h.records, h.plain = readPlain(a.wire, types[a.to.family])
	}
	return h
}

// hear takes replies to first questions.
func (r *Resolver) hear(replies []reply) {
	read := make([]heard, 0, mmsg.Most)
	for i := range replies {
		read = append(read, r.readReply(&replies[i]))
	}
	over := make([]*call, 0, mmsg.Most)
	now := time.Now()
	r.mu.Lock()
	for i, a := range replies {
		c := a.to.call
		switch {
		case c.over:
		case !read[i].plain:
			a.wire = bytes.Clone(a.wire)
			r.askOn(c, a.to.family, &a)
		default:
			if read[i].err == nil {
				delete(r.resting, c.upstream)
			}
			r.asked(c.upstream, c.born, read[i].err != nil)
			if r.settleLocked(c, a.to.family, read[i].records, now) {
				over = append(over, c)
			}
		}
	}
	r.mu.Unlock()
	answerCalls(over)
}

// alarm is the one timer of all calls of a Resolver.
type alarm struct {
	timer *time.Timer
	at    time.Time // when it rings; zero: it does not
}

// wake has ring called at due at the latest. r.mu is held.
func (r *Resolver) wake(due time.Time) {
	a := &r.alarm
	if !a.at.IsZero() && !due.Before(a.at) {
		return
	}
	a.at = due
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(due), r.ring)
		return
	}
	a.timer.Reset(time.Until(due))
}

// ring looks for calls that are due.
func (r *Resolver) ring() {
	var over []*call
	var next time.Time
	now := time.Now()
	r.mu.Lock()
	r.alarm.at = time.Time{}
	for i := len(r.flights) - 1; i >= 0; i-- { // whose end may take it out, putting the last in its place
		c := r.flights[i]
		switch {
		case c.due.IsZero():
		case !c.due.After(now):
			c.due = time.Time{}
			if r.expire(c, now) {
				over = append(over, c)
			}
		case next.IsZero() || c.due.Before(next):
			next = c.due
		}
	}
	if !next.IsZero() {
		r.wake(next)
	}
	r.mu.Unlock()
	answerCalls(over)
}

// expire ends the wait for c's questions: for the second family when the first has
// addresses, else for the first answers. It reports whether c is over. r.mu is held.
func (r *Resolver) expire(c *call, now time.Time) (over bool) {
	for i := range c.families {
		f := &c.families[i]
		switch {
		case f.settled:
		case f.cancel != nil:
			if c.hurried {
				f.cancel() // it settles
			}
		case c.hurried:
			r.unasked(f)
			over = r.settleLocked(c, i, records{err: context.Canceled}, now)
		default:
			if _, asked := r.unasked(f); asked { // else its reply is just being read
				r.askOn(c, i, &reply{err: context.DeadlineExceeded})
			}
		}
	}
	return over
}

// unasked gives up the first question of a family. r.mu is held.
func (r *Resolver) unasked(f *family) (closed *line, asked bool) {
	r.lines.mu.Lock()
	defer r.lines.mu.Unlock()
	asked = f.line != nil
	return f.leave(), asked
}

// left is what a call that nobody waits for leaves behind.
type left struct {
	call   *call
	closed [2]*line
}

// wait waits until no goroutine of it is left.
func (l *left) wait() {
	if l.call == nil {
		return
	}
	for _, c := range l.closed {
		if c != nil {
			<-c.done
		}
	}
	l.call.running.Wait()
}

// leave gives up waiting for c, which is not over. The last caller to leave ends it, and
// then waits. r.mu is held.
func (r *Resolver) leave(c *call) left {
	if c.waiters--; c.waiters > 0 || c.over {
		return left{}
	}
	r.end(c) // the next caller starts a new one
	l := left{call: c}
	for i := range c.families {
		f := &c.families[i]
		if f.cancel != nil {
			f.cancel()
		} else {
			l.closed[i], _ = r.unasked(f)
		}
	}
	return l
}

// guessed is told that somebody guesses at an upstream's answers. It says so now and then.
func (r *Resolver) guessed(to netip.AddrPort, questions int) {
	r.mu.Lock()
	now := time.Now()
	again := now.Sub(r.warned) < coolDown
	if !again {
		r.warned = now
	}
	r.mu.Unlock()
	if r.Log != nil && !again {
		r.Log.Warn("datagrams from a DNS upstream's address answer no question of ours, as if somebody guessed; questions move to another port, then to TCP",
			"upstream", to.String(), "datagrams", maxStray, "questions", questions)
	}
}

// Package flood bounds what denials write to the record of one policy or one run:
//
//	audit := &flood.Sink{To: writer}
//	defer audit.Close()
//
// A client's denials get a line each up to a burst of 2,000, then 100 a second (10,000
// and 1,000 for all clients together): what a test suite is refused is on record one
// by one. Beyond that those that agree in client,
// policy, door, reason and destination are summed up: once a second they become one
// event, the last of them, with their number and the time of the first. Everything
// else passes as it comes: what is allowed, the end of a flow, the denial of a flow
// that was allowed before. Events about neither a flow nor a file write the counts first.
//
// Threat: a program inside, or one client of many, fills the disk with denials that
// cost it nothing (50,000 questions in 3 s were 28 MB) -> about 260 lines a second
// for one client, whatever it asks for; a client is an address, or an IPv6 /64, so
// that many source addresses of one machine are not many clients. Left over: of
// denials that came too fast to more than 32 destinations in a second, the
// destinations are not known; if the process is killed, the counts of its last
// second are lost.
package flood

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"egressd/event"
	"egressd/policy"
)

// Bounds of [Sink]. A client that is told no a hundred times a second is listed; one
// that floods is counted.
const (
	listedBurst   = 2000   // denials of one client that get a line each at once
	listedRate    = 100    // and a second from then on
	allBurst      = 10_000 // the same for all clients together
	allRate       = 1000
	sumEvery      = time.Second // how often counts are written
	maxClients    = 1024        // with an allowance of their own; the others share one
	maxSums       = 256         // lines with a host, a second
	maxClientSums = 32          // of them, of one client
	maxPlainSums  = 1024        // lines in all, after which clients are summed up as well

	maxStringBytes = 2048 // of a client's text: a line holds no more
)

// Sink stands in front of the sink that records. Set To before the first Emit. Safe
// for concurrent use.
type Sink struct {
	To event.Sink // gets what passes and the sums

	flushing sync.Mutex // held while sums are written, so that Close waits for them
	mu       sync.Mutex
	clients  map[clientKey]*allowance
	all      allowance
	sums     map[sumKey]*sum
	order    []sumKey // of first appearance
	timer    *time.Timer
	closed   bool
	summed   uint64
}

// clientKey is who is denied: the run, or a client of the daemon. Zero: all that
// have no allowance of their own.
type clientKey struct {
	session string
	from    netip.Prefix
}

// sumKey is what summed denials have in common. Where destinations are summed up,
// too, mixed is set and host, asked and port are zero.
type sumKey struct {
	clientKey
	policy string // digest
	query  bool
	door   event.Door
	reason policy.Reason
	host   policy.Host
	asked  string
	port   uint16
	mixed  bool
}

// sum is denials that have no line of their own yet.
type sum struct {
	last  event.Event // with a body of its own
	count int64
	first time.Time
}

// allowance is a token bucket for lines, and what one client has summed up.
type allowance struct {
	used float64 // tokens that are gone; they come back with time
	at   time.Time
	sums int // entries with a destination in the table of sums
}

// take reports whether one more line is within burst and rate.
func (a *allowance) take(now time.Time, burst, rate float64) bool {
	a.refill(now, rate)
	if a.used+1 > burst {
		return false
	}
	a.used++
	return true
}

func (a *allowance) refill(now time.Time, rate float64) {
	if passed := now.Sub(a.at).Seconds(); passed > 0 {
		a.used = max(0, a.used-passed*rate)
		a.at = now
	}
}

// Emit implements [event.Sink]. Nil for a denial that is summed up means that it will be
// recorded with the others.
func (r *Sink) Emit(e event.Event) error {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	k, ok := denial(&e)
	switch {
	case !ok && often(e.Body):
		return r.To.Emit(e)
	case !ok:
		_ = r.Flush() // what is not written is kept
		return r.To.Emit(e)
	case !r.listed(&k, &e):
		return nil
	}
	err := r.To.Emit(e)
	if errors.Is(err, event.ErrQuota) && r.add(k, &e) {
		return nil // denied already; it is told when there is room again
	}
	return err
}

// Unavailable reports whether To cannot record.
func (r *Sink) Unavailable() error { return event.Fanout{r.To}.Unavailable() }

// denial reports what e is summed up by; ok is false if it is not to be: it denies
// nothing, or ends a flow that was allowed.
func denial(e *event.Event) (k sumKey, ok bool) {
	if v, decides := e.Verdict(); !decides || e.WasAllowed || v.Decision != event.Blocked {
		return k, false
	}
	var client netip.AddrPort
	switch b := e.Body.(type) {
	case *event.Connection:
		ok = b.Repeated == 0
		k.door, k.reason, k.host, k.port, client = b.Door, b.Reason, b.Host, b.Port, b.Client
	case *event.Query:
		ok = b.Repeated == 0
		k.query, k.door, k.reason, k.host, k.asked, client = true, event.DoorDNS, b.Reason, b.Host, b.Asked, b.Client
	}
	k.policy, k.session, k.from = e.Policy, e.Session, clientOf(client.Addr())
	return k, ok
}

// clientOf is the part of a client's address that it cannot choose.
func clientOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	switch {
	case a.IsLoopback():
		bits = 8
	case a.Is6():
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: the client is not known
	}
	return p
}

// often reports whether bodies of this kind come with every flow or file.
func often(b event.Body) bool {
	switch b.(type) {
	case *event.Connection, *event.Query, *event.Packet, *event.Close, *event.FileChanged, *event.FileRefused:
		return true
	}
	return false
}

// listed reports whether e gets a line of its own. Else it was added to the sums.
// It sets the client of k.
func (r *Sink) listed(k *sumKey, e *event.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return true
	}
	client := r.client(k)
	if r.sums[*k] == nil && client.take(e.Time, listedBurst, listedRate) && r.all.take(e.Time, allBurst, allRate) {
		return true
	}
	r.addLocked(*k, e, 1, e.Time)
	return false
}

// client reports the allowance of k's client. Clients for which there is no room
// become one. r.mu is held.
func (r *Sink) client(k *sumKey) *allowance {
	a := r.clients[k.clientKey]
	if a == nil && len(r.clients) >= maxClients {
		k.clientKey = clientKey{}
		a = r.clients[k.clientKey]
	}
	if a == nil {
		if r.clients == nil {
			r.clients = make(map[clientKey]*allowance)
		}
		a = new(allowance)
		r.clients[k.clientKey] = a
	}
	return a
}

// add adds e to the sums, unless the Sink is closed.
func (r *Sink) add(k sumKey, e *event.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.addLocked(k, e, 1, e.Time)
	return true
}

// addLocked counts n denials, the last of which is e, in the most exact sum that
// there is room for.
func (r *Sink) addLocked(k sumKey, e *event.Event, n int64, first time.Time) {
	r.summed += uint64(n) // #nosec G115 -- n is positive
	s := r.sums[k]
	if client := r.client(&k); s == nil {
		if client.sums < maxClientSums && len(r.sums) < maxSums {
			client.sums++
		} else {
			k.host, k.asked, k.port, k.mixed = policy.Host{}, "", 0, true
		}
		if len(r.sums) >= maxPlainSums && r.sums[k] == nil {
			k.clientKey, k.policy = clientKey{}, ""
		}
		s = r.sums[k]
	}
	if s == nil {
		if r.sums == nil {
			r.sums = make(map[sumKey]*sum)
		}
		s = &sum{first: first}
		r.sums[k] = s
		r.order = append(r.order, k)
	}
	s.count += n
	k.keep(e, &s.last)
	if r.timer == nil {
		r.timer = time.AfterFunc(sumEvery, r.tick)
	}
}

// keep copies what the sums keep of e: no more than k says of its destination and
// client, and no string longer than a line holds.
// into has a body of its own, or none yet.
func (k *sumKey) keep(e, into *event.Event) {
	body := into.Body
	*into = *e
	into.Session, into.Policy = k.session, k.policy
	switch b := e.Body.(type) {
	case *event.Connection:
		c := *b
		c.Flow = 0
		if k.mixed {
			c = event.Connection{Door: c.Door, Verdict: event.Verdict{Reason: c.Reason}, Client: c.Client}
		}
		if k.clientKey == (clientKey{}) {
			c.Client = netip.AddrPort{}
		}
		c.Path, c.Error, c.Method = cut(c.Path), cut(c.Error), cut(c.Method)
		if old, ok := body.(*event.Connection); ok {
			*old, into.Body = c, old
		} else {
			into.Body = new(c)
		}
	case *event.Query:
		q := *b
		if k.mixed {
			q = event.Query{Verdict: event.Verdict{Reason: q.Reason}, Client: q.Client}
		}
		if k.clientKey == (clientKey{}) {
			q.Client = netip.AddrPort{}
		}
		q.Asked = cut(q.Asked)
		if old, ok := body.(*event.Query); ok {
			*old, into.Body = q, old
		} else {
			into.Body = new(q)
		}
	}
}

func cut(s string) string { return s[:min(len(s), maxStringBytes)] }

// tick writes the counts of one second.
func (r *Sink) tick() {
	r.mu.Lock()
	r.timer = nil
	r.mu.Unlock()
	_ = r.Flush() // what was not written is kept, and counted again
}

// Flush writes what is summed up now. What the sink does not take is kept for the
// next time, and is the error.
func (r *Sink) Flush() error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	r.mu.Lock()
	sums, order := r.sums, r.order
	r.sums, r.order = nil, nil
	r.forget(time.Now())
	r.mu.Unlock()
	var lost int64
	var why error
	for _, k := range order {
		s := sums[k]
		e := s.event()
		if why == nil {
			if why = r.To.Emit(e); why == nil {
				continue
			}
		}
		lost += s.count
		r.mu.Lock()
		r.summed -= uint64(s.count) // #nosec G115 -- counted again
		r.addLocked(k, &s.last, s.count, s.first)
		r.mu.Unlock()
	}
	if lost > 0 {
		return fmt.Errorf("%d denials that were summed up are not recorded: %w", lost, why)
	}
	return nil
}

// event is the line that stands for s.
func (s *sum) event() event.Event {
	e := s.last
	switch b := e.Body.(type) {
	case *event.Connection:
		c := *b
		c.Repeated, c.First = s.count, s.first
		e.Body = &c
	case *event.Query:
		q := *b
		q.Repeated, q.First = s.count, s.first
		e.Body = &q
	}
	return e
}

// forget lets go of clients that have their whole allowance back. r.mu is held.
func (r *Sink) forget(now time.Time) {
	for k, a := range r.clients {
		a.sums = 0
		if a.refill(now, listedRate); a.used == 0 {
			delete(r.clients, k)
		}
	}
}

// Summed reports how many denials had no line of their own so far.
func (r *Sink) Summed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summed
}

// Close writes what is summed up and ends the timer. The error says what could not
// be written. What comes later passes as it comes.
func (r *Sink) Close() error {
	r.mu.Lock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	err := r.Flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	return err
}

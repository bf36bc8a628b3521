package proxy

import (
	"container/list"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Implementation constants of admission.
const (
	// patienceFull is how long a client may take to say what it wants while
	// others wait for its place.
	patienceFull = time.Second
	// clientsMax bounds the clients whose set-up rate is remembered.
	clientsMax = 1 << 16
)

// admission counts the connections that one Server lets in.
//
// Threat: a client opens connections until none is left and says half a head on
// each (slow loris) -> when the gate is full, the connection that has said
// nothing complete for longest, over a second, makes room for the newcomer, and
// so does a kept-alive one without a request. Left over: connections that are in
// use; the limit per client is for those.
type admission struct {
	mu       sync.Mutex
	total    int
	refusing int
	clients  map[netip.Addr]*clientCount
	waiting  list.List // of *seat: those without a request under way, oldest first
	all      bucket
}

// clientCount is one source address. It is kept while it has a connection or
// its bucket is not full again.
type clientCount struct {
	connections int
	waiting     list.List // of *seat, oldest first
	bucket      bucket
}

// seat is one connection's place in one admission. The admission's lock guards
// it.
type seat struct {
	a      *admission // nil: none
	v      *visit
	client *clientCount
	addr   netip.Addr
	since  time.Time     // waiting since
	old    *list.Element // in admission.waiting; nil: not waiting
	mine   *list.Element // in clientCount.waiting
	lost   bool          // given to another connection
}

// bucket is a token bucket that holds a second's worth.
type bucket struct {
	tokens float64
	filled time.Time // zero: full
}

// take takes one token.
func (b *bucket) take(rate float64, now time.Time) bool {
	b.fill(rate, now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// fill adds what has come since, and reports whether the bucket is full. A
// clock that stands still or goes back adds nothing.
func (b *bucket) fill(rate float64, now time.Time) bool {
	most := max(rate, 1)
	if b.filled.IsZero() {
		b.tokens = most
	} else {
		b.tokens = min(b.tokens+max(now.Sub(b.filled).Seconds(), 0)*rate, most)
	}
	b.filled = now
	return b.tokens >= most
}

// enter counts v in as st. A word says which limit it is over; it has no place
// then.
func (a *admission) enter(st *seat, v *visit, b bounds, now time.Time) (over string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	addr := v.client.Addr()
	c := a.client(addr)
	if c == nil {
		return "more clients than the gate can tell apart come too fast"
	}
	if over := a.makeRoom(c, b, now); over != "" {
		a.forget(addr, c, b, now)
		return over
	}
	a.clients[addr] = c // its last connection may have been evicted just now
	*st = seat{a: a, v: v, client: c, addr: addr}
	a.total++
	c.connections++
	st.wait(now)
	return ""
}

// makeRoom checks each limit. Rates come behind the numbers, so that what is
// refused takes no token, and nobody is evicted for what is refused.
func (a *admission) makeRoom(c *clientCount, b bounds, now time.Time) (over string) {
	if a.total >= b.connections && !evictable(&a.waiting, now) {
		if b.fewFiles {
			return fmt.Sprintf("there are as many connections as the limit on open files leaves room for (%d)", b.connections)
		}
		return fmt.Sprintf("there are as many connections as there may be (connections: %d)", b.connections)
	}
	if c.connections >= b.perClient && !evictable(&c.waiting, now) {
		return fmt.Sprintf("this client has as many connections as it may have (connections_per_client: %d)", b.perClient)
	}
	if b.ratePerClient < b.rate && !c.bucket.take(b.ratePerClient, now) {
		return fmt.Sprintf("this client connects more often than it may (rate_per_client: %g a second)", b.ratePerClient)
	}
	if !a.all.take(b.rate, now) {
		return fmt.Sprintf("clients connect more often than they may (rate_per_second: %g)", b.rate)
	}
	if c.connections >= b.perClient {
		evictOldest(&c.waiting)
	}
	if a.total >= b.connections {
		evictOldest(&a.waiting)
	}
	return ""
}

// client finds or makes the count of addr; nil: there are too many.
func (a *admission) client(addr netip.Addr) *clientCount {
	if c := a.clients[addr]; c != nil {
		return c
	}
	if a.clients == nil {
		a.clients = make(map[netip.Addr]*clientCount)
	}
	if len(a.clients) >= clientsMax && !a.forgetOne() {
		return nil
	}
	c := new(clientCount)
	a.clients[addr] = c
	return c
}

// forgetOne makes room for another client: one without a connection gets its
// tokens back early.
func (a *admission) forgetOne() bool {
	tried := 0
	for addr, c := range a.clients {
		if c.connections == 0 {
			delete(a.clients, addr)
			return true
		}
		if tried++; tried == 64 {
			break
		}
	}
	return false
}

// forget drops a client that nothing needs to be known about.
func (a *admission) forget(addr netip.Addr, c *clientCount, b bounds, now time.Time) {
	if c.connections == 0 && (b.ratePerClient >= b.rate || c.bucket.fill(b.ratePerClient, now)) {
		delete(a.clients, addr)
	}
}

// tidy forgets the clients that have gone. It runs every second.
func (a *admission) tidy(b bounds, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for addr, c := range a.clients {
		a.forget(addr, c, b, now)
	}
}

// evictable reports whether somebody has waited for long enough to lose the
// place.
func evictable(waiting *list.List, now time.Time) bool {
	e := waiting.Front()
	return e != nil && now.Sub(e.Value.(*seat).since) >= patienceFull
}

// evictOldest takes the place of the seat that has waited for longest.
func evictOldest(waiting *list.List) {
	st := waiting.Front().Value.(*seat)
	st.unwait()
	st.giveUp()
	st.lost = true
	st.v.evict()
}

// evictSome makes up to n waiting connections end, for their descriptors.
func (a *admission) evictSome(n int, now time.Time) (evicted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for evicted < n && evictable(&a.waiting, now) {
		evictOldest(&a.waiting)
		evicted++
	}
	return evicted
}

// refuse counts one more connection that is only told that it is over a limit;
// false: there are too many of them. Where true, refused must follow.
func (a *admission) refuse() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusing >= refusers {
		return false
	}
	a.refusing++
	return true
}

func (a *admission) refused() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusing--
}

// wait puts st among those that may be evicted.
func (st *seat) wait(now time.Time) {
	st.since = now
	st.old = st.a.waiting.PushBack(st)
	st.mine = st.client.waiting.PushBack(st)
}

func (st *seat) unwait() {
	if st.old != nil {
		st.a.waiting.Remove(st.old)
		st.client.waiting.Remove(st.mine)
		st.old, st.mine = nil, nil
	}
}

func (st *seat) giveUp() {
	st.a.total--
	if st.client.connections--; st.client.connections == 0 && st.client.bucket.filled.IsZero() {
		delete(st.a.clients, st.addr)
	}
}

// leave takes back what enter counted.
func (st *seat) leave() {
	if st.a == nil {
		return
	}
	st.a.mu.Lock()
	defer st.a.mu.Unlock()
	st.unwait()
	if !st.lost {
		st.giveUp()
	}
	st.lost = true
}

// busy keeps the place; false: it has been lost.
func (st *seat) busy() bool {
	if st.a == nil {
		return true
	}
	st.a.mu.Lock()
	defer st.a.mu.Unlock()
	st.unwait()
	return !st.lost
}

func (st *seat) idle(now time.Time) {
	if st.a == nil {
		return
	}
	st.a.mu.Lock()
	defer st.a.mu.Unlock()
	if !st.lost && st.old == nil {
		st.wait(now)
	}
}

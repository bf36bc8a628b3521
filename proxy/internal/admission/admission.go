// Package admission decides which client connections a server serves: how many
// at a time, how many of one client, and how often they may come. It knows no
// policy and no protocol.
//
//	var gate admission.Gate
//	var place admission.Place
//	if over := gate.Enter(&place, client, limits, now); over != "" {
//		// serve the client only to say so
//	}
//	defer place.Leave()
//	place.Busy()    // it has said what it wants: it keeps its place now
//	place.Idle(now) // it is to say what it wants next
//
// [Set] is the connections that are waited for at the end, [Budget] the memory
// for their unfinished requests.
package admission

import (
	"container/list"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Implementation constants.
const (
	// PatienceFull is how long a client may take to say what it wants while
	// others wait for its place.
	PatienceFull = time.Second
	// clientsMax bounds the clients whose set-up rate is remembered.
	clientsMax = 1 << 16
	// RefusalsMax bounds the connections over the limit that are still answered.
	RefusalsMax = 256
)

// Limits bound a Gate. All are positive: there is no "unlimited".
type Limits struct {
	Connections, PerClient int
	Rate, RatePerClient    float64 // new connections a second
	Short                  string  // what leaves room for no more Connections; "": the policy says how many
}

// Client is a connection that asks for a place.
type Client interface {
	// Addr is whose limits count; zero: not known.
	Addr() netip.Addr
	// Evict makes the connection end, so that another one has its place. It is
	// called with the gate locked and must not call the gate.
	Evict()
}

// Gate counts the connections that one server lets in. The zero Gate is empty.
// Safe for concurrent use.
//
// Threat: a client opens connections until none is left and says half a head on
// each (slow loris) -> when the gate is full, the connection that has said
// nothing complete for longest, over a second, makes room for the newcomer, and
// so does a kept-alive one without a request. Left over: connections that are in
// use; the limit per client is for those.
type Gate struct {
	mu       sync.Mutex
	total    int
	refusing int
	clients  map[netip.Addr]*clientCount
	waiting  list.List // of *Place: those without a request under way, oldest first
	all      bucket
}

// clientCount is one source address. It is kept while it has a connection or
// its bucket is not full again.
type clientCount struct {
	connections int
	waiting     list.List // of *Place, oldest first
	bucket      bucket
}

// Place is one connection's place in one Gate, whose lock guards it. The zero
// Place is in none.
type Place struct {
	gate   *Gate // nil: none
	conn   Client
	client *clientCount
	addr   netip.Addr
	since  time.Time     // waiting since
	old    *list.Element // in Gate.waiting; nil: not waiting
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

// Enter counts c in and gives it place st. If a limit stands in the way, over
// names it, and c has no place.
func (g *Gate) Enter(st *Place, c Client, b Limits, now time.Time) (over string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	addr := c.Addr()
	count := g.client(addr)
	if count == nil {
		return "more clients than the gate can tell apart come too fast"
	}
	if over := g.makeRoom(count, b, now); over != "" {
		g.forget(addr, count, b, now)
		return over
	}
	g.clients[addr] = count // its last connection may have been evicted just now
	*st = Place{gate: g, conn: c, client: count, addr: addr}
	g.total++
	count.connections++
	st.wait(now)
	return ""
}

// makeRoom checks each limit. Rates come behind the numbers, so that what is
// refused takes no token, and nobody is evicted for what is refused.
func (g *Gate) makeRoom(c *clientCount, b Limits, now time.Time) (over string) {
	if g.total >= b.Connections && !evictable(&g.waiting, now) {
		if b.Short != "" {
			return fmt.Sprintf("there are as many connections as %s leaves room for (%d)", b.Short, b.Connections)
		}
		return fmt.Sprintf("there are as many connections as there may be (connections: %d)", b.Connections)
	}
	if c.connections >= b.PerClient && !evictable(&c.waiting, now) {
		return fmt.Sprintf("this client has as many connections as it may have (connections_per_client: %d)", b.PerClient)
	}
	if b.RatePerClient < b.Rate && !c.bucket.take(b.RatePerClient, now) {
		return fmt.Sprintf("this client connects more often than it may (rate_per_client: %g a second)", b.RatePerClient)
	}
	if !g.all.take(b.Rate, now) {
		return fmt.Sprintf("clients connect more often than they may (rate_per_second: %g)", b.Rate)
	}
	if c.connections >= b.PerClient {
		evictOldest(&c.waiting)
	}
	if g.total >= b.Connections {
		evictOldest(&g.waiting)
	}
	return ""
}

// client finds or makes the count of addr; nil: there are too many.
func (g *Gate) client(addr netip.Addr) *clientCount {
	if c := g.clients[addr]; c != nil {
		return c
	}
	if g.clients == nil {
		g.clients = make(map[netip.Addr]*clientCount)
	}
	if len(g.clients) >= clientsMax && !g.forgetOne() {
		return nil
	}
	c := new(clientCount)
	g.clients[addr] = c
	return c
}

// forgetOne makes room for another client: one without a connection gets its
// tokens back early.
func (g *Gate) forgetOne() bool {
	tried := 0
	for addr, c := range g.clients {
		if c.connections == 0 {
			delete(g.clients, addr)
			return true
		}
		if tried++; tried == 64 {
			break
		}
	}
	return false
}

// forget drops a client that nothing needs to be known about.
func (g *Gate) forget(addr netip.Addr, c *clientCount, b Limits, now time.Time) {
	if c.connections == 0 && (b.RatePerClient >= b.Rate || c.bucket.fill(b.RatePerClient, now)) {
		delete(g.clients, addr)
	}
}

// Tidy forgets the clients that have gone. Call it every second.
func (g *Gate) Tidy(b Limits, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for addr, c := range g.clients {
		g.forget(addr, c, b, now)
	}
}

// evictable reports whether somebody has waited for long enough to lose the
// place.
func evictable(waiting *list.List, now time.Time) bool {
	e := waiting.Front()
	return e != nil && now.Sub(e.Value.(*Place).since) >= PatienceFull
}

// evictOldest takes the place that has waited for longest.
func evictOldest(waiting *list.List) {
	st := waiting.Front().Value.(*Place)
	st.unwait()
	st.giveUp()
	st.lost = true
	st.conn.Evict()
}

// EvictSome makes up to n waiting connections end, for their descriptors.
func (g *Gate) EvictSome(n int, now time.Time) (evicted int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for evicted < n && evictable(&g.waiting, now) {
		evictOldest(&g.waiting)
		evicted++
	}
	return evicted
}

// Refuse counts one more connection that is served only to be refused. False:
// there are too many of them. After true, Refused must follow.
func (g *Gate) Refuse() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusing >= RefusalsMax {
		return false
	}
	g.refusing++
	return true
}

// Refused is the end of a connection that Refuse counted.
func (g *Gate) Refused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusing--
}

// Counts are how many a Gate keeps track of.
type Counts struct {
	Connections int // that have a place
	Refusals    int // under way
	Clients     int // addresses that are remembered
}

// Counts reports what g keeps track of now.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{g.total, g.refusing, len(g.clients)}
}

// wait puts st among those that may be evicted.
func (st *Place) wait(now time.Time) {
	st.since = now
	st.old = st.gate.waiting.PushBack(st)
	st.mine = st.client.waiting.PushBack(st)
}

func (st *Place) unwait() {
	if st.old != nil {
		st.gate.waiting.Remove(st.old)
		st.client.waiting.Remove(st.mine)
		st.old, st.mine = nil, nil
	}
}

func (st *Place) giveUp() {
	st.gate.total--
	if st.client.connections--; st.client.connections == 0 && st.client.bucket.filled.IsZero() {
		delete(st.gate.clients, st.addr)
	}
}

// Leave takes back what Enter counted. More than one call does no harm.
func (st *Place) Leave() {
	if st.gate == nil {
		return
	}
	st.gate.mu.Lock()
	defer st.gate.mu.Unlock()
	st.unwait()
	if !st.lost {
		st.giveUp()
	}
	st.lost = true
}

// Busy keeps the place from being taken. False: it has been taken already.
func (st *Place) Busy() bool {
	if st.gate == nil {
		return true
	}
	st.gate.mu.Lock()
	defer st.gate.mu.Unlock()
	st.unwait()
	return !st.lost
}

// Idle lets the place be taken again when the gate is full.
func (st *Place) Idle(now time.Time) {
	if st.gate == nil {
		return
	}
	st.gate.mu.Lock()
	defer st.gate.mu.Unlock()
	if !st.lost && st.old == nil {
		st.wait(now)
	}
}

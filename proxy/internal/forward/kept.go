package forward

import (
	"net"
	"sync"
	"syscall"
	"time"

	"egressd/proxy/internal/http1"
)

// sweepEvery is how soon the end of a kept connection is noticed. Implementation
// constant.
const sweepEvery = time.Second

// route is what a connection is kept by. Its address is the one that was judged
// when it was dialled; Gate.Pass hears it each time.
type route struct {
	host     string // Exchange.Host
	absolute bool   // it leads to a proxy
}

// origin is one connection to an origin. One exchange uses it at a time.
type origin struct {
	*originConn
	in     http1.Responses
	route  route
	used   bool // by an exchange before the one under way
	since  time.Time
	silent func() bool // nothing has arrived, not even its end; nil: that cannot be known
}

func newOrigin(c *originConn, r route) *origin {
	return &origin{originConn: c, in: http1.Responses{Source: c, HeadBytes: maxResponseHeadBytes}, route: r, silent: silence(c.Conn)}
}

// rawConn is the socket that carries c and nothing else; nil: there is none, or
// bytes that have arrived may lie elsewhere, as within TLS.
func rawConn(c net.Conn) syscall.RawConn {
	if over, ok := c.(interface{ Direct() net.Conn }); ok {
		c = over.Direct()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// kept holds the connections without an exchange. The zero kept is empty and
// ready. Safe for concurrent use.
//
// Threat: an origin sends a response before there is a request, to have it taken
// for the response to whoever comes next -> a connection on which anything has
// arrived is not used again. Left over: bytes that arrive between that look and
// the request.
type kept struct {
	mu      sync.Mutex
	idle    map[route][]*origin // the one used last at the end
	n       int                 // in all
	sweeper *time.Timer         // nil: not running
}

// take reports a connection of r; nil: there is none.
func (k *kept) take(r route) *origin {
	for {
		o := k.pop(r)
		if o == nil || o.usable(time.Now()) {
			return o
		}
		_ = o.Close()
	}
}

func (o *origin) usable(now time.Time) bool { return now.Sub(o.since) < idleTimeout && o.silent() }

func (k *kept) pop(r route) *origin {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.idle[r]
	if len(list) == 0 {
		return nil
	}
	o := list[len(list)-1]
	list[len(list)-1] = nil
	k.set(r, list[:len(list)-1])
	k.n--
	return o
}

// set stores the list of r. The caller holds mu.
func (k *kept) set(r route, list []*origin) {
	if len(list) == 0 {
		delete(k.idle, r)
		return
	}
	k.idle[r] = list
}

// put keeps o, or closes it if it cannot be watched. Beyond the bounds the
// connection that has waited longest is closed.
func (k *kept) put(o *origin) {
	if o.silent == nil {
		_ = o.Close()
		return
	}
	o.used, o.since = true, time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle == nil {
		k.idle = make(map[route][]*origin)
	}
	if len(k.idle[o.route]) >= maxIdlePerHost {
		k.evict(o.route)
	} else if k.n >= maxIdle {
		k.evict(k.oldest())
	}
	k.idle[o.route] = append(k.idle[o.route], o)
	k.n++
	if k.sweeper == nil {
		k.sweeper = time.AfterFunc(sweepEvery, k.sweep)
	}
}

// evict closes the connection of r that has waited longest. The caller holds mu.
func (k *kept) evict(r route) {
	list := k.idle[r]
	_ = list[0].Close()
	k.set(r, append(list[:0], list[1:]...))
	k.n--
}

// oldest is the route of the connection that has waited longest. The caller holds mu.
func (k *kept) oldest() (r route) {
	var since time.Time
	for of, list := range k.idle {
		if since.IsZero() || list[0].since.Before(since) {
			r, since = of, list[0].since
		}
	}
	return r
}

// sweep closes what has waited for too long, and what the origin has closed.
func (k *kept) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for r, list := range k.idle {
		stay := list[:0]
		for _, o := range list {
			if o.usable(now) {
				stay = append(stay, o)
			} else {
				_ = o.Close()
				k.n--
			}
		}
		clear(list[len(stay):])
		k.set(r, stay)
	}
	switch {
	case k.sweeper == nil: // close has run
	case k.n == 0:
		k.sweeper = nil
	default:
		k.sweeper.Reset(sweepEvery)
	}
}

// close closes all of them.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, list := range k.idle {
		for _, o := range list {
			_ = o.Close()
		}
	}
	k.idle, k.n = nil, 0
	if k.sweeper != nil {
		k.sweeper.Stop()
		k.sweeper = nil
	}
}

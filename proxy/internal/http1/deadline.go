package http1

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Implementation constants.
const (
	defaultHeadTimeout = 10 * time.Second
	drainPatience      = time.Second // for a first request
)

// clocks are the deadlines of a connection. A deadline that is due anyway late
// enough stays as it is: setting one costs more than the read that it bounds.
type clocks struct {
	mu      sync.Mutex // guards what follows
	read    time.Time  // in force; zero: none, or not known
	wrote   time.Time  // of writes, in force
	stopped bool       // the read under way is to end

	waiting, draining atomic.Bool // for the first byte of a head; see Drain
}

// longAgo ends a read at once.
func longAgo() time.Time { return time.Unix(1, 0) }

// slack is by how much a wait of d may be longer: not at all if it is short.
func slack(d time.Duration) time.Duration {
	if d < time.Minute {
		return 0
	}
	return d / 8
}

// until bounds the next read by t.
func (k *clocks) until(c net.Conn, t time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(c, t)
}

// set is until for who holds mu.
func (k *clocks) set(c net.Conn, t time.Time) {
	if k.stopped {
		return
	}
	if !k.read.Equal(t) || t.IsZero() {
		k.read = t
		_ = c.SetReadDeadline(t) // fails on a closed connection, as the read does
	}
}

// within bounds the next read by d from now, and a little; 0: there is no bound.
func (k *clocks) within(c net.Conn, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d <= 0 {
		k.set(c, time.Time{})
		return
	}
	if left := time.Until(k.read); left < d || left > d+slack(d) {
		k.set(c, time.Now().Add(d+slack(d)))
	}
}

// idle is within for the first byte of a head. False: the connection drains. What a
// client has sent before its first request is read may be here already, so that
// request gets a moment.
func (k *clocks) idle(c net.Conn, d time.Duration, first bool) bool {
	k.waiting.Store(true)
	if k.draining.Load() {
		if !first {
			return false
		}
		k.waiting.Store(false)
		d = min(d, drainPatience)
	}
	k.within(c, d)
	return true
}

// busy says that the first byte is there, or will not come.
func (k *clocks) busy() { k.waiting.Store(false) }

// write bounds the next write by d from now, and a little.
func (k *clocks) write(c net.Conn, d time.Duration) {
	if d <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Until(k.wrote) < d {
		k.wrote = time.Now().Add(d + slack(d))
		_ = c.SetWriteDeadline(k.wrote) // fails on a closed connection, as the write does
	}
}

// stop ends the read under way, and all reads until resume.
func (k *clocks) stop(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.read = true, longAgo()
	_ = c.SetReadDeadline(k.read)
}

// resume lets reads wait again, without a bound.
func (k *clocks) resume(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = false
	k.set(c, time.Time{})
}

// Drain ends the connection as soon as no request is under way: now, if it waits
// for the first byte of one. It may be called with locks held that deadlines
// take.
func (c *Conn) Drain() {
	c.clocks.draining.Store(true)
	if c.clocks.waiting.Load() {
		_ = c.Conn.Close()
	}
}

// Draining reports whether Drain was called.
func (c *Conn) Draining() bool { return c.clocks.draining.Load() }

// Raw takes away the deadlines: the connection speaks another protocol from here
// on, and who speaks it sets its own.
func (c *Conn) Raw() { _ = c.SetDeadline(time.Time{}) } // fails on a closed connection, as the read does

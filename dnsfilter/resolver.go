package dnsfilter

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

// Implementation limits of a Resolver.
const (
	lookupTimeout = 5 * time.Second // one look-up, all upstreams and both families
	tryTimeout    = 2 * time.Second // one question to one upstream
	// Once one family has brought addresses, the other gets so much more (RFC
	// 8305 section 3 says 50 ms, for a connection that waits; ours is cached).
	otherFamilyWait = 500 * time.Millisecond
	coolDown        = 10 * time.Second // a failed upstream is asked last for so long
	maxCalls        = 512              // look-ups at once
	maxAddrs        = 64               // addresses of one name and family
)

// Resolver is the caching resolver: TTLs are honoured, negative answers cached
// (RFC 2308), equal look-ups shared, everything bounded. It implements
// proxy.Resolver; errors are *LookupError and carry a policy reason. The zero
// Resolver has no upstreams and fails every look-up. Set the fields before the
// first look-up. Safe for concurrent use. It starts no goroutine that outlives
// the look-ups it serves.
type Resolver struct {
	Upstreams []Upstream     // asked in this order; failed ones last for a while. See SetUpstreams
	Log       *slog.Logger   // nil discards
	RootCAs   *x509.CertPool // who may vouch for tls:// upstreams; nil: the system's

	// Asked hears how long an upstream took for one question, and whether it failed it.
	// It must be quick, without an allocation, and safe for concurrent use. Nil: nobody does.
	Asked func(u Upstream, took time.Duration, failed bool)

	mu      sync.Mutex
	cache   cache
	calls   map[string]*call       // by name: those that callers may join
	flights []*call                // all of them
	resting map[Upstream]time.Time // until when a failed upstream is asked last
	alarm   alarm
	lines   lines     // to upstreams over UDP
	warned  time.Time // of forged answers

	// ask puts one question to one upstream; nil means the network.
	ask func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error)
}

// found is a positive answer.
type found struct {
	addrs   []netip.Addr // shared: never modified
	expires time.Time
}

// Lookup reports the addresses of name, IPv4 before IPv6, at least one. An
// address literal is its own answer. The caller's cancellation ends only the
// caller's waiting while others share the look-up.
func (r *Resolver) Lookup(ctx context.Context, name policy.Host) ([]netip.Addr, error) {
	f, err := r.lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	return append([]netip.Addr(nil), f.addrs...), nil
}

// known reports what can be said of name without asking anybody; now is false when
// that is nothing.
func (r *Resolver) known(name policy.Host) (f found, err error, now bool) {
	switch {
	case name.Addr().IsValid():
		return found{addrs: oneAddr(name.Addr()), expires: time.Now().Add(maxTTL)}, nil, true
	case name.IsZero():
		return found{}, &LookupError{Reason: policy.ReasonMalformed, Err: errNoName}, true
	case name.IsLocalhost():
		return found{addrs: loopback(), expires: time.Now().Add(maxTTL)}, nil, true
	case neverAsked(name):
		return found{}, &LookupError{Name: name.Name(), Reason: policy.ReasonNotFound, Err: errNoAddress}, true
	case r == nil:
		return found{}, &LookupError{Name: name.Name(), Reason: policy.ReasonDNSError, Err: errNoUpstreams}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.knownLocked(name)
}

// knownLocked is the part of known that the resolver knows. r.mu is held.
func (r *Resolver) knownLocked(name policy.Host) (f found, err error, now bool) {
	if len(r.Upstreams) == 0 {
		return found{}, &LookupError{Name: name.Name(), Reason: policy.ReasonDNSError, Err: errNoUpstreams}, true
	}
	if e, ok := r.cache.get(name, time.Now()); ok {
		return e.result, e.err, true
	}
	return found{}, nil, false
}

// lookup is Lookup with the expiry, and without the copy.
func (r *Resolver) lookup(ctx context.Context, name policy.Host) (found, error) {
	if f, err, now := r.known(name); now {
		return f, err
	}
	if ctx.Err() != nil {
		return found{}, gaveUp(ctx, name)
	}
	var out outbox
	r.mu.Lock()
	c, f, err := r.join(name, &out)
	if c == nil {
		r.mu.Unlock()
		return f, err
	}
	c.waiters++
	if c.done == nil {
		c.done = make(chan struct{})
	}
	r.mu.Unlock()
	out.flush()

	select {
	case <-c.done:
		return c.result, c.err
	case <-ctx.Done():
		r.mu.Lock()
		left := r.leave(c)
		r.mu.Unlock()
		left.wait()
		return found{}, gaveUp(ctx, name)
	}
}

// SetUpstreams has r ask others from now on, for a policy that was loaded again.
// What the old ones said is forgotten, unless nothing changes.
func (r *Resolver) SetUpstreams(ups []Upstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(r.Upstreams, ups) {
		return
	}
	r.Upstreams, r.cache, r.resting = slices.Clone(ups), cache{}, nil
	clear(r.calls) // their results are not cached; the next caller starts a new one
}

// gaveUp is the error of a caller that stopped waiting.
func gaveUp(ctx context.Context, name policy.Host) error {
	e := &LookupError{Name: name.Name(), Reason: policy.ReasonDNSTimeout, Err: ctx.Err()}
	if errors.Is(e.Err, context.Canceled) {
		e.Reason = policy.ReasonInternal // nobody is left to tell
	}
	return e
}

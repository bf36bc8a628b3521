package dnsfilter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

// maxChain bounds the CNAMEs followed inside one answer.
const maxChain = 16

var errTooManyAddrs = errors.New("answered with more addresses than are read")

// records is what one question of one type brought.
type records struct {
	addrs  []netip.Addr
	keep   time.Duration
	exists bool // false: NXDOMAIN
	err    error
}

// merge puts what both families of name brought together. keep is how long the result
// may be remembered.
func merge(name policy.Host, v4, v6 *records) (f found, keep time.Duration, err error) {
	addrs := v4.addrs
	switch {
	case len(addrs) == 0:
		addrs = v6.addrs
	case len(v6.addrs) > 0:
		addrs = slices.Concat(v4.addrs, v6.addrs)
	}
	switch {
	case len(addrs) > 0 && (v4.err != nil || v6.err != nil):
		// Half an answer: look for the other half again in a while.
		return found{addrs: addrs}, min(max(v4.keep, v6.keep), maxHalfTTL), nil
	case len(addrs) > 0:
		return found{addrs: addrs}, lifespan(v4, v6), nil
	case v4.err != nil || v6.err != nil:
		err := errors.Join(v4.err, v6.err)
		return found{}, failureTTL, &LookupError{Name: name.Name(), Reason: failure(err), Err: err}
	}
	none := &LookupError{Name: name.Name(), Reason: policy.ReasonNotFound, Err: errNoAddress}
	none.exists = v4.exists || v6.exists
	return found{}, min(v4.keep, v6.keep), none
}

// lifespan is how long a merged answer may be remembered: as long as every
// address in it. A family without addresses does not shorten that to its own
// (often missing) negative lifetime, but it is looked for again in a while.
func lifespan(v4, v6 *records) time.Duration {
	switch {
	case len(v4.addrs) == 0:
		return min(v6.keep, maxNegTTL)
	case len(v6.addrs) == 0:
		return min(v4.keep, maxNegTTL)
	}
	return min(v4.keep, v6.keep)
}

// failure sorts what went wrong into timeout or error.
func failure(err error) policy.Reason {
	var ne net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout() {
		return policy.ReasonDNSTimeout
	}
	return policy.ReasonDNSError
}

// asked tells how long u took from start.
func (r *Resolver) asked(u Upstream, start time.Time, failed bool) {
	if r.Asked != nil {
		r.Asked(u, time.Since(start), failed)
	}
}

// family asks the upstreams, healthy ones first, until one answers. first was asked
// already, over UDP, when the call was born, and had is what that brought; nil: nobody was.
func (r *Resolver) family(ctx context.Context, c *call, qtype uint16, had *reply) records {
	name, first, born := c.name, c.upstream, c.born
	var errs []error
	for _, u := range r.order(first, had != nil) {
		start := time.Now()
		if had != nil {
			start = born
		}
		m, err := r.try(ctx, u, question(name, qtype), had)
		had = nil
		if err == nil {
			rec, rerr := read(m, qtype)
			if rerr == nil {
				r.asked(u, start, false)
				r.revive(u)
				return rec
			}
			err = rerr
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return records{err: ctx.Err()} // nobody waits; the upstream is not to blame
		}
		r.asked(u, start, true)
		r.rest(u, err)
		errs = append(errs, fmt.Errorf("%s: %w", u, err))
		if ctx.Err() != nil {
			break
		}
	}
	return records{err: errors.Join(errs...)}
}

// try puts one question to one upstream, with its share of the time. It has been asked
// over UDP if there is something that this brought.
func (r *Resolver) try(ctx context.Context, u Upstream, q *dns.Msg, had *reply) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if r.ask != nil {
		return r.ask(ctx, u, q)
	}
	return r.exchange(ctx, u, q, had)
}

// order reports which upstreams to ask: the first if it was asked already, healthy
// upstreams, resting ones, and everybody once more, because a datagram may get lost.
func (r *Resolver) order(first Upstream, asked bool) []Upstream {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	list := make([]Upstream, 0, 2*len(r.Upstreams)+1)
	var tired []Upstream
	for _, u := range r.Upstreams {
		if now.Before(r.resting[u]) {
			tired = append(tired, u)
			continue
		}
		list = append(list, u)
	}
	list = append(list, tired...)
	list = append(list, list...)
	if asked {
		if i := slices.Index(list, first); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		list = slices.Insert(list, 0, first)
	}
	return list
}

// preferred is whom to ask first; false: there is nobody. r.mu is held.
func (r *Resolver) preferred(now time.Time) (Upstream, bool) {
	for _, u := range r.Upstreams {
		if !now.Before(r.resting[u]) {
			return u, true
		}
	}
	if len(r.Upstreams) == 0 {
		return Upstream{}, false
	}
	return r.Upstreams[0], true
}

// rest notes that u failed. The first failure after a good time is logged,
// since another upstream may well answer and nobody else would hear of it.
func (r *Resolver) rest(u Upstream, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.resting == nil {
		r.resting = make(map[Upstream]time.Time, len(r.Upstreams))
	}
	if r.Log != nil && !now.Before(r.resting[u]) {
		r.Log.Warn("DNS upstream failed, asked last for a while", "upstream", u.String(), "for", coolDown, "err", err)
	}
	r.resting[u] = now.Add(coolDown)
}

// revive notes that u works.
func (r *Resolver) revive(u Upstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.resting, u)
}

// question builds a query from scratch: the judged name, a type, and nothing
// that a client sent.
func question(name policy.Host, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name.Name()+".", qtype) // random id, RD
	m.SetEdns0(ourUDPBytes, false)
	return m
}

// read collects the addresses of an answer, following CNAMEs inside it. Codes
// other than "yes" and "no such name" are the upstream's failure.
func read(m *dns.Msg, qtype uint16) (records, error) {
	switch m.Rcode {
	case dns.RcodeSuccess:
	case dns.RcodeNameError:
		return records{keep: negativeTTL(m)}, nil
	default:
		return records{}, fmt.Errorf("answered %s", dns.RcodeToString[m.Rcode])
	}
	owner, ttl := dns.CanonicalName(m.Question[0].Name), maxTTL
	for range maxChain {
		next := ""
		rec := records{exists: true}
		for _, rr := range m.Answer {
			h := rr.Header()
			if h.Class != dns.ClassINET || dns.CanonicalName(h.Name) != owner {
				continue
			}
			if a, ok := address(rr, qtype); ok {
				if len(rec.addrs) == maxAddrs {
					// Cutting the list would pick, and what is cut off is not judged.
					return records{}, errTooManyAddrs
				}
				rec.addrs = append(rec.addrs, a)
				ttl = min(ttl, lifetime(h.Ttl))
			} else if c, ok := rr.(*dns.CNAME); ok && next == "" {
				next = dns.CanonicalName(c.Target)
				ttl = min(ttl, lifetime(h.Ttl))
			}
		}
		if len(rec.addrs) > 0 {
			rec.keep = max(ttl, minTTL)
			return rec, nil
		}
		if next == "" {
			return records{exists: true, keep: min(max(ttl, minTTL), negativeTTL(m))}, nil
		}
		owner = next
	}
	return records{}, errors.New("its CNAME chain does not end")
}

// address reports the address in rr, when it is of the type asked for.
func address(rr dns.RR, qtype uint16) (netip.Addr, bool) {
	switch rr := rr.(type) {
	case *dns.A:
		if a, ok := netip.AddrFromSlice(rr.A.To4()); ok && qtype == dns.TypeA {
			return a, true
		}
	case *dns.AAAA:
		if a, ok := netip.AddrFromSlice(rr.AAAA.To16()); ok && qtype == dns.TypeAAAA {
			return a, true // IPv4-mapped ones stay as they are: policy judges the inside
		}
	}
	return netip.Addr{}, false
}

// lifetime is a TTL as sent; the top bit set means zero. RFC 2181 section 8.
func lifetime(ttl uint32) time.Duration {
	if ttl > 1<<31-1 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}

// negativeTTL is how long "no" holds: the lesser of the SOA's TTL and MINIMUM
// (RFC 2308 section 5), without an SOA only as long as a failure.
func negativeTTL(m *dns.Msg) time.Duration {
	for _, rr := range m.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			ttl := min(lifetime(soa.Hdr.Ttl), lifetime(soa.Minttl))
			return min(max(ttl, minTTL), maxNegTTL)
		}
	}
	return failureTTL
}

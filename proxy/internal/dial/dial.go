// Package dial connects to one of several addresses of a name, and knows the
// reasons why that fails.
//
//	addrs, err := resolver.Lookup(ctx, name)
//	if err != nil {
//		return dial.LookupReason(err)
//	}
//	got := dial.First(ctx, dial.Interleave(addrs), func(ctx context.Context, a netip.Addr) dial.Result {
//		c, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
//		...
//	})
//
// The caller judges the addresses before it hands them over, and makes each
// attempt itself.
package dial

import (
	"context"
	"net"
	"net/netip"
	"time"

	"egressd/policy"
)

// Implementation constants.
const (
	Stagger  = 250 * time.Millisecond // between two attempts (RFC 8305 section 5)
	MaxAddrs = 16                     // addresses tried of one answer
)

// Result is a connection to the address that was judged, or the reason why
// there is none.
type Result struct {
	Conn     net.Conn // nil unless Decision allows; the caller closes it
	Addr     netip.Addr
	Decision policy.Decision
}

// First starts an attempt every Stagger, or as soon as one has failed, and takes
// the first connection (RFC 8305); connections that come later are closed. Without
// a connection, the decision says why. It returns after all attempts have ended,
// of which each runs in a goroutine of its own.
func First(ctx context.Context, addrs []netip.Addr, attempt func(context.Context, netip.Addr) Result) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan Result, len(addrs))
	try := func(a netip.Addr) { results <- attempt(ctx, a) }
	stagger := time.NewTicker(Stagger)
	defer stagger.Stop()
	var won Result
	last := policy.Decision{Reason: policy.ReasonUnreachable}
	started, ended := 0, 0
	for ended < started || started < len(addrs) && won.Conn == nil && ctx.Err() == nil {
		if started == ended && won.Conn == nil {
			go try(addrs[started])
			started++
		}
		select {
		case <-stagger.C:
			if started < len(addrs) && won.Conn == nil {
				go try(addrs[started])
				started++
			}
		case res := <-results:
			ended++
			switch {
			case res.Conn == nil:
				last = worse(last, res.Decision)
			case won.Conn == nil:
				won = res
				cancel()
			default:
				_ = res.Conn.Close() // a later winner is not needed
			}
		}
	}
	if won.Conn == nil {
		return Result{Decision: last}
	}
	return won
}

// worse picks the decision that tells the client more: an address that
// answered "no" over one that cannot be reached at all.
func worse(a, b policy.Decision) policy.Decision {
	if b.Reason == policy.ReasonUnreachable && a.Reason != policy.ReasonUnreachable {
		return a
	}
	return b
}

// Interleave orders addrs for dialling: the families in turn, starting with
// the first answer's (RFC 8305 section 4), at most MaxAddrs.
func Interleave(addrs []netip.Addr) []netip.Addr {
	if len(addrs) < 2 {
		return addrs
	}
	var same, other []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(same), len(other)) {
		if i < len(same) {
			out = append(out, same[i])
		}
		if i < len(other) {
			out = append(out, other[i])
		}
	}
	return out[:min(len(out), MaxAddrs)]
}

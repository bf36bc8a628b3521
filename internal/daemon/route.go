package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"slices"
	"sync"
	"time"

	"egressd/gate"
	"egressd/internal/daemon/tokens"
	"egressd/proxy"
)

// gateRoute is gate.Shared.Route.
type gateRoute func(proxy.Client) *gate.Gate

// routes picks the policy that judges a client: that of the token it sent, else of
// its source prefix, else of the listener.
//
// Threat: a client picks a policy that is not its own -> for an unknown token
// nothing else is tried; the source is the address that the kernel reports. Left
// over: a client that can send from an address in another prefix is judged by that
// prefix's policy; use prefixes only for networks in which addresses cannot be
// forged.
type routes struct {
	d       *daemon
	sources []source // longest prefix first

	mu     sync.Mutex
	tokens *tokens.Set
	open   map[[sha256.Size]byte]*tokenGate // by SHA-256 of the token, for tokens that were used
}

type source struct {
	prefix netip.Prefix
	to     *policyGate
}

// tokenGate is the gate of one token: its flows are closed when the token is
// taken away, and its limits are its own.
type tokenGate struct {
	of   *policyGate
	gate *gate.Gate
	stop context.CancelFunc
	used time.Time // when a client last sent the token
}

// tokenIdle is how long a token's gate without a connection is kept.
const tokenIdle = 10 * time.Minute

// needed reports whether anything but the listener decides about a policy.
func (r *routes) needed() bool { return r.d.c.Tokens != "" || len(r.d.c.Sources) > 0 }

// behind reports the route of a listener whose policy is own; nil: it has none.
func (r *routes) behind(own *policyGate) gateRoute {
	if own != nil && !r.needed() {
		return nil
	}
	return func(c proxy.Client) *gate.Gate {
		if c.HasToken {
			return r.byToken(c.Token)
		}
		if n := r.bySource(c.Addr.Addr()); n != nil {
			return n.gate
		}
		if own != nil {
			return own.gate
		}
		return nil
	}
}

// sort prepares the sources, once every policy has its gate.
func (r *routes) sort() {
	for _, s := range r.d.c.Sources {
		r.sources = append(r.sources, source{s.Prefix.Masked(), r.d.find(s.Policy)})
	}
	slices.SortFunc(r.sources, func(a, b source) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
}

func (r *routes) bySource(a netip.Addr) *policyGate {
	a = a.Unmap().WithZone("")
	for _, s := range r.sources {
		if s.prefix.Contains(a) {
			return s.to
		}
	}
	return nil
}

// byToken reports the gate of a token, nil if the token is unknown.
func (r *routes) byToken(token string) *gate.Gate {
	digest := sha256.Sum256([]byte(token))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if t := r.open[digest]; t != nil {
		t.used = now
		return t.gate
	}
	name, ok := r.tokens.Lookup(token)
	if !ok {
		return nil
	}
	n := r.d.find(name)
	if n == nil {
		return nil // unreachable: a set that names another policy is refused
	}
	t, err := r.d.openToken(n, name+"/"+rand.Text()[:8])
	if err != nil {
		r.d.log.Error("a token's gate could not be made; its client is refused", "policy", name, "err", err)
		return nil
	}
	if r.open == nil {
		r.open = make(map[[sha256.Size]byte]*tokenGate)
	}
	t.used = now
	r.open[digest] = t
	return t.gate
}

// collect ends the gates of tokens that have not been used for tokenIdle. The next
// client with such a token gets another gate.
func (r *routes) collect(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for digest, t := range r.open {
		if now.Sub(t.used) >= tokenIdle && t.gate.Stats().Connections == 0 {
			delete(r.open, digest)
			t.stop()
		}
	}
}

// set puts tokens in force and closes the gates of those that now name another
// policy, or none. It reports how many it closed.
func (r *routes) set(next *tokens.Set) (closed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = next
	for digest, t := range r.open {
		if name, ok := next.LookupDigest(digest); !ok || name != t.of.source.Name {
			delete(r.open, digest)
			t.stop()
			closed++
		}
	}
	return closed
}

// known reports how many tokens are in force.
func (r *routes) known() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tokens.Refs())
}

// gates lists the gates of tokens whose policy is n; nil: of all.
func (r *routes) gates(n *policyGate) []*gate.Gate {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*gate.Gate
	for _, t := range r.open {
		if n == nil || t.of == n {
			out = append(out, t.gate)
		}
	}
	return out
}

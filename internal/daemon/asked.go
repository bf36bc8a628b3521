package daemon

import (
	"sync"
	"time"

	"egressd/dnsfilter"
)

// asked counts the questions to each DNS server, of all policies. Safe for concurrent use.
type asked struct {
	count func(server string) func(took time.Duration, failed bool)

	mu      sync.RWMutex
	servers map[dnsfilter.Upstream]func(took time.Duration, failed bool)
}

// hear is dnsfilter.Resolver.Asked. Upstreams are those of the operator's policies; what
// is kept of each is small.
func (a *asked) hear(u dnsfilter.Upstream, took time.Duration, failed bool) {
	a.of(u)(took, failed)
}

// of reports what counts the questions to u. Its series are there from then on: an increase
// needs a number before it.
func (a *asked) of(u dnsfilter.Upstream) func(took time.Duration, failed bool) {
	a.mu.RLock()
	count := a.servers[u]
	a.mu.RUnlock()
	if count != nil {
		return count
	}
	count = a.count(u.String())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.servers = make(map[dnsfilter.Upstream]func(time.Duration, bool))
	}
	a.servers[u] = count
	return count
}

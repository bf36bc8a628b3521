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
	a.mu.RLock()
	count := a.servers[u]
	a.mu.RUnlock()
	if count == nil {
		count = a.count(u.String())
		a.mu.Lock()
		if a.servers == nil {
			a.servers = make(map[dnsfilter.Upstream]func(time.Duration, bool))
		}
		a.servers[u] = count
		a.mu.Unlock()
	}
	count(took, failed)
}

package dnsfilter

import (
	"container/list"
	"time"

	"egressd/policy"
)

// How long answers are kept, whatever their TTL says.
const (
	minTTL     = time.Second     // a TTL of 0 still serves the checks of one flow
	maxTTL     = time.Hour       // a record withdrawn by its owner goes within this
	maxNegTTL  = 5 * time.Minute // RFC 2308 section 5
	failureTTL = time.Second     // RFC 9520 section 3.2: at least one second
	maxHalfTTL = time.Minute     // one family's addresses, if the other's question failed
	maxCached  = 4096            // names
)

// entry is what is remembered of one name: addresses or an error.
type entry struct {
	name    policy.Host
	result  found
	err     error
	expires time.Time
}

// cache is a bounded LRU of answers. The zero cache is empty. Not safe for
// concurrent use: Resolver.mu guards it.
type cache struct {
	byName map[string]*list.Element // of *entry
	recent list.List                // front: used last
}

// get reports what is known of name at now. What has expired is gone: stale
// answers are never served.
func (c *cache) get(name policy.Host, now time.Time) (*entry, bool) {
	el, ok := c.byName[name.Name()]
	if !ok {
		return nil, false
	}
	e := el.Value.(*entry)
	if !now.Before(e.expires) {
		c.recent.Remove(el)
		delete(c.byName, name.Name())
		return nil, false
	}
	c.recent.MoveToFront(el)
	return e, true
}

// put remembers e for name; an entry that has expired already is not kept.
func (c *cache) put(name policy.Host, e entry, now time.Time) {
	if !now.Before(e.expires) {
		return
	}
	e.name = name
	if el, ok := c.byName[name.Name()]; ok {
		el.Value = &e
		c.recent.MoveToFront(el)
		return
	}
	if c.byName == nil {
		c.byName = make(map[string]*list.Element)
	}
	c.byName[name.Name()] = c.recent.PushFront(&e)
	if c.recent.Len() > maxCached {
		old := c.recent.Back()
		c.recent.Remove(old)
		delete(c.byName, old.Value.(*entry).name.Name())
	}
}

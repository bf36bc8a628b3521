// Package summary keeps the totals of one run and says, at its end, what was
// allowed, what was blocked, and what to type to allow it.
package summary

import (
	"strings"
	"sync"

	"egressd/event"
	"egressd/policy"
)

// Implementation constants that bound a Collector.
const (
	maxKeys      = 4096 // of each table; what does not fit is counted together
	maxTextBytes = 512  // of a host or path: more than is printed of it
)

// key is one line of the summary.
type key struct {
	host   string
	port   uint16
	proto  string // "" is TCP
	reason string // blocked only
	method string // blocked by method or path only
	path   string
}

// total is what happened to one key.
type total struct {
	key
	count   int
	bytes   int64
	suggest string
	order   int // of first appearance
}

// Collector is an event sink that adds up. The zero Collector is ready. Safe
// for concurrent use; memory is bounded.
type Collector struct {
	mu       sync.Mutex
	allowed  map[key]*total
	blocked  map[key]*total
	audited  map[key]*total
	overflow int // events beyond maxKeys
	unlisted int // refused packets that came too fast to tell what they were
}

// Emit implements [event.Sink]. It never fails.
func (c *Collector) Emit(e event.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Type {
	case event.NetworkConnected:
		c.connected(e)
	case event.NetworkClosed:
		if t := c.allowed[key{host: host(e), port: e.Port}]; t != nil {
			t.bytes += e.BytesIn + e.BytesOut
		}
	case event.DNSQuery:
		k := key{host: host(e), reason: e.Reason}
		if e.Decision == event.Blocked {
			c.block(k, e)
		} else if e.Audit {
			c.audit(k, e)
		}
	}
	return nil
}

func (c *Collector) connected(e event.Event) {
	if e.Count > 0 {
		c.unlisted += int(e.Count)
		return
	}
	k := key{host: host(e), port: e.Port, proto: e.Proto}
	if e.Decision != event.Allowed {
		k.reason = e.Reason
		if reason, _ := Reason(e.Reason); reason == policy.ReasonMethodNotListed || reason == policy.ReasonPathNotListed {
			k.method, k.path = clip(e.Method), clip(e.Path)
		}
		c.block(k, e)
		return
	}
	c.add(&c.allowed, k)
	if e.Audit {
		k.reason = e.Reason
		c.audit(k, e)
	}
}

func (c *Collector) audit(k key, e event.Event) {
	if t := c.add(&c.audited, k); t != nil && t.suggest == "" {
		t.suggest = suggest(e)
	}
}

func (c *Collector) block(k key, e event.Event) {
	if t := c.add(&c.blocked, k); t != nil && t.suggest == "" {
		t.suggest = suggest(e)
	}
}

func (c *Collector) add(table *map[key]*total, k key) *total {
	if *table == nil {
		*table = make(map[key]*total)
	}
	t := (*table)[k]
	if t == nil {
		if len(*table) >= maxKeys {
			c.overflow++
			return nil
		}
		t = &total{key: k, order: len(*table)}
		(*table)[k] = t
	}
	t.count++
	return t
}

// host reports what a person would call e's destination.
func host(e event.Event) string {
	if e.Host != "" {
		return clip(e.Host)
	}
	return e.Addr
}

// clip keeps of a client's text what can be printed, and lets go of the rest.
func clip(s string) string {
	if len(s) <= maxTextBytes {
		return s
	}
	return strings.Clone(s[:maxTextBytes])
}

// Package summary keeps the totals of one run and says, at its end, what was
// allowed, what was blocked, and what to type to allow it.
//
//	var c summary.Collector // an event.Sink
//	... run ...
//	err := c.Write(os.Stderr)
package summary

import (
	"cmp"
	"net/netip"
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
	host   policy.Host
	asked  string // a name of a DNS question that is no host; host is zero then
	port   uint16
	proto  string // "" is TCP
	reason policy.Reason
	method string // blocked by method or path only
	path   string
}

// total is what happened to one key.
type total struct {
	key
	count   int
	bytes   int64
	suggest string
	via     bool       // an upstream proxy was to be asked
	rule    string     // that denied it, and its place
	addr    netip.Addr // that was refused; zero: none was, or it is the host
	order   int        // of first appearance

	zone  string // of a folded line: what its names end in
	names int    // of a folded line
}

// Collector is an event sink that adds up. The zero Collector is ready. Safe
// for concurrent use; memory is bounded.
type Collector struct {
	mu       sync.Mutex
	allowed  map[key]*total
	blocked  map[key]*total
	audited  map[key]*total
	files    map[fileKey]*fileTotal
	overflow int // events beyond maxKeys
	unlisted int // refused packets that came too fast to tell what they were
}

// Counts reports how many destinations were allowed, blocked, and allowed but not reached.
func (c *Collector) Counts() (allowed, blocked, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.account()
	return len(a.allowed), len(a.blocked) + len(a.needless), len(a.failed)
}

// Emit implements [event.Sink]. It never fails.
func (c *Collector) Emit(e event.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b := e.Body.(type) {
	case *event.Connection:
		c.connection(b)
	case *event.Packet:
		c.packet(b)
	case *event.Close:
		if t := c.allowed[key{host: b.Host, port: b.Port, reason: policy.ReasonAllowed}]; t != nil {
			t.bytes += b.BytesIn + b.BytesOut
		}
	case *event.Query:
		c.query(b)
	case *event.FileRefused:
		c.file(b)
	}
	return nil
}

func (c *Collector) connection(e *event.Connection) {
	r := request(e)
	k := key{host: r.Host, port: e.Port, reason: e.Reason}
	if e.Decision == event.Blocked {
		if e.Reason == policy.ReasonMethodNotListed || e.Reason == policy.ReasonPathNotListed {
			k.method, k.path = clip(e.Method), clip(e.Path)
		}
		if t := c.deny(&c.blocked, k, r); t != nil {
			t.rule, t.via = cmp.Or(t.rule, ruleText(e.Rule)), e.Via != ""
		}
		return
	}
	if e.Audit {
		c.deny(&c.audited, k, r)
	}
	k.reason = policy.ReasonAllowed
	c.add(&c.allowed, k)
}

// packet counts what no rule can allow, so it suggests none.
func (c *Collector) packet(e *event.Packet) {
	if e.Count > 0 {
		c.unlisted += int(e.Count)
		return
	}
	c.add(&c.blocked, key{host: policy.HostFromAddr(e.Dst), port: e.Port, proto: e.Proto, reason: policy.ReasonProtocol})
}

func (c *Collector) query(e *event.Query) {
	k := key{host: e.Host, reason: e.Reason}
	if e.Host.IsZero() {
		k.asked = clip(e.Asked)
	}
	r := policy.Request{Host: e.Host, Addr: e.Addr}
	if e.Decision == event.Blocked {
		if t := c.deny(&c.blocked, k, r); t != nil && t.rule == "" {
			t.rule = ruleText(e.Rule)
		}
	} else if e.Audit {
		c.deny(&c.audited, k, r)
	}
}

// deny counts what the policy denies, and keeps the rule that would allow it.
// Nil: there is no room for it.
func (c *Collector) deny(table *map[key]*total, k key, r policy.Request) *total {
	t := c.add(table, k)
	if t != nil && t.suggest == "" && !r.Host.IsZero() {
		t.suggest, t.addr = suggest(k.reason, r), r.Addr
	}
	return t
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

// clip keeps of a client's text what can be printed, and lets go of the rest.
func clip(s string) string {
	if len(s) <= maxTextBytes {
		return s
	}
	return strings.Clone(s[:maxTextBytes])
}

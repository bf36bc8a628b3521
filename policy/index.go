package policy

import (
	"net/netip"
	"slices"
	"strings"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/lists"
	"egressd/policy/internal/special"
)

// compiled is one rule in the form Decide reads.
type compiled struct {
	rule  *Rule
	ports grammar.Ports
	path  *grammar.Path // nil for a rule about the whole host
	raw   bool

	// special marks an address rule that names special-purpose addresses, so
	// that the class check does not apply to what it covers.
	special bool
	single  bool // an address rule for one address

	next int32 // the next rule under the same key, -1 at the end
}

// index finds the rules that name a host: one hash look-up for the exact name,
// one a label for suffixes, one a prefix length in use for addresses.
type index struct {
	rules []compiled
	lists []*listed // further rules about names
	count int       // rules, those of lists included
	exact map[string]int32
	below map[string]int32
	addrs map[netip.Prefix]int32
	bits4 []int // prefix lengths in use
	bits6 []int
	paths bool // a rule has a path

	// allows marks the index of allow rules.
	//
	// Threat: a rule names the Teredo server in an address, whose packets go to
	// the client in it -> an allow rule must name the client, a deny rule
	// either. Left over: nothing.
	allows bool
}

func newIndex(sizeHint int) *index {
	return &index{
		rules: make([]compiled, 0, sizeHint),
		exact: make(map[string]int32, sizeHint),
		below: make(map[string]int32),
		addrs: make(map[netip.Prefix]int32),
	}
}

// add files p under every key it covers.
func (ix *index) add(rule *Rule, p grammar.Pattern) {
	c := compiled{rule: rule, ports: p.Ports, path: p.Path, raw: p.Raw, next: -1}
	ix.paths = ix.paths || p.Path != nil
	switch p.Scope {
	case grammar.Exact:
		push(ix, ix.exact, p.Name, c)
	case grammar.Below:
		push(ix, ix.below, p.Name, c)
	case grammar.Tree:
		push(ix, ix.exact, p.Name, c)
		push(ix, ix.below, p.Name, c)
	case grammar.Addr:
		c.special, c.single = special.Names(p.Prefix), p.Prefix.IsSingleIP()
		push(ix, ix.addrs, p.Prefix, c)
		bits := &ix.bits4
		if p.Prefix.Addr().Is6() {
			bits = &ix.bits6
		}
		if !slices.Contains(*bits, p.Prefix.Bits()) {
			*bits = append(*bits, p.Prefix.Bits())
		}
	}
}

func push[K comparable](ix *index, m map[K]int32, key K, c compiled) {
	if head, ok := m[key]; ok {
		c.next = head
	}
	m[key] = int32(len(ix.rules))
	ix.rules = append(ix.rules, c)
}

// spells reports whether a rule names this very name.
func (ix *index) spells(name string) bool {
	_, ok := ix.exact[name]
	for i := 0; !ok && i < len(ix.lists); i++ {
		f := ix.lists[i].table.Find(name, lists.Apex)
		_, ok = f.Next()
	}
	return ok
}

// cursor walks the rules that name one host, in no particular order:
//
//	for c := ix.find(h); c.next(); {
//		use(c.rule)
//	}
type cursor struct {
	ix   *index
	list int         // the next list to be asked about the current name
	in   lists.Found // the rules about it in the list before
	asks lists.Scope // what of the name they must cover
	rule *compiled   // the rule that next found
	head int32       // the rule after it under the current key, -1 when a new key is due

	name string // rest of the name whose parents are still to be looked up
	done bool   // all keys of the name have been looked up

	addrs [3]netip.Addr // the address and the IPv4 addresses it carries
	addr  int           // which of them is being looked up
	bit   int           // which prefix length
}

// find reports a cursor in front of the first rule about h.
func (ix *index) find(h Host) cursor {
	c := cursor{ix: ix, head: -1, name: h.name, asks: lists.Apex, done: h.name == ""}
	if h.name == "" {
		c.list = len(ix.lists)
	} else if i, ok := ix.exact[h.name]; ok {
		c.head = i
	}
	if h.addr.IsValid() {
		c.addrs[0] = h.addr
		if first, second, ok := special.Embedded(h.addr); ok {
			c.addrs[1] = second
			if second != first && !ix.allows {
				c.addrs[2] = first
			}
		}
	}
	return c
}

// next moves to the next rule; false when there is none left.
func (c *cursor) next() bool {
	for c.head < 0 {
		if at, ok := c.in.Next(); ok {
			c.rule = c.ix.lists[c.list-1].rule(at)
			return true
		}
		if c.list < len(c.ix.lists) {
			c.in = c.ix.lists[c.list].table.Find(c.name, c.asks)
			c.list++
			continue
		}
		if !c.nextKey() {
			return false
		}
	}
	c.rule = &c.ix.rules[c.head]
	c.head = c.rule.next
	return true
}

// nextKey looks up one more key; false when there is none left.
func (c *cursor) nextKey() bool {
	if !c.done {
		i := strings.IndexByte(c.name, '.')
		if i < 0 {
			c.done = true
			return true
		}
		c.name, c.asks, c.list = c.name[i+1:], lists.Below, 0
		if head, ok := c.ix.below[c.name]; ok {
			c.head = head
		}
		return true
	}
	for c.addr < len(c.addrs) && c.addrs[c.addr].IsValid() {
		a := c.addrs[c.addr]
		bits := c.ix.bits4
		if a.Is6() {
			bits = c.ix.bits6
		}
		if c.bit >= len(bits) {
			c.addr, c.bit = c.addr+1, 0
			continue
		}
		// The error is impossible: bits came from a prefix of this family.
		pre, err := a.Prefix(bits[c.bit])
		c.bit++
		if err != nil {
			continue // unreachable
		}
		if head, ok := c.ix.addrs[pre]; ok {
			c.head = head
		}
		return true
	}
	return false
}

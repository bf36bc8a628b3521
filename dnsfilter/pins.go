package dnsfilter

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"egressd/policy"
)

const (
	// maxPins bounds the table, whatever the prefix has room for.
	maxPins = 65536
	// pinHold is how long an address surely stays with its name after it was
	// last handed out or connected to: as long as a client may keep the answer,
	// and a quarter more for the way of a connection.
	pinHold = syntheticTTL * 5 / 4 * time.Second
	// spelledShare is the part of the table that is kept for names which the
	// policy spells out: one in so many addresses.
	spelledShare = 4
)

var errPinsFull = errors.New("every synthetic address is in use")

// Pins is the table of synthetic addresses: bounded, safe for concurrent use.
// It implements proxy.Names. The zero Pins hands out nothing.
//
// An address stays with its name while there are others. When there are none
// left the one idle for longest changes hands, but not while a client may still
// keep the answer; until then Pin fails. An open flow does not count as use: it was
// judged by its name when it came, and nothing looks its address up again.
//
// Threat: a client keeps an old answer, the address meanwhile means another
// name -> an address changes hands only after every answer with it has run out;
// the connection is judged by the name the address has now. Left over: a client
// that keeps answers for longer reaches another allowed name than it meant
// (over TLS, the SNI gives it away and it is denied).
//
// Threat: a client asks for any number of names below a wildcard rule, until
// every address is taken, and starves others -> a quarter of the table is kept
// for names that the policy spells out; of the rest no client gets more than
// what it leaves for others, and beyond that it gets its own old ones back.
// Left over: the flooding client's own new wildcard names fail until its old
// ones have idled for 75 seconds; a client that can forge source addresses is
// many clients.
type Pins struct {
	prefix netip.Prefix
	base   uint32
	size   int // addresses that may be handed out

	mu     sync.Mutex
	byName map[policy.Host]*pin
	bySlot []*pin
	// Front: used last. Each pin is in one of them.
	spelled *list.List
	wild    *list.List
	owned   map[netip.Addr]*list.List // the wild pins of each client, in that order, too; never empty
}

// pin is one address in use.
type pin struct {
	name  policy.Host
	slot  int
	used  time.Time
	owner netip.Addr // who asked first; wild pins only
	in    *list.List
	at    *list.Element // in it
	own   *list.Element // in the owner's list
}

// pinRequest is a question for an address.
type pinRequest struct {
	name    policy.Host
	owner   netip.Addr // the client; zero: not known
	spelled bool       // the policy spells the name out
}

// SyntheticRange is where synthetic addresses come from unless [NewPins] is
// given another prefix: 198.18.0.0/15, set aside for benchmarks (RFC 2544), so
// that no network has it.
func SyntheticRange() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, 0}), 15)
}

// NewPins hands out addresses from prefix (zero: [SyntheticRange]), an
// IPv4 prefix of at most 30 bits. Addresses that end in .0 or .255 and the
// prefix's first and last are left out: some programs take them for networks.
func NewPins(prefix netip.Prefix) (*Pins, error) {
	if prefix == (netip.Prefix{}) {
		prefix = SyntheticRange()
	}
	if !prefix.IsValid() || !prefix.Addr().Is4() || prefix.Bits() > 30 || prefix != prefix.Masked() {
		return nil, fmt.Errorf("synthetic addresses from %q: give an IPv4 network of at most 30 bits, like 198.18.0.0/15", prefix)
	}
	p := &Pins{
		prefix: prefix, byName: make(map[policy.Host]*pin),
		spelled: list.New(), wild: list.New(), owned: make(map[netip.Addr]*list.List),
	}
	a := prefix.Addr().As4()
	p.base = binary.BigEndian.Uint32(a[:])
	if prefix.Bits() <= 24 {
		p.size = min(254<<(24-prefix.Bits()), maxPins)
	} else {
		p.size = 1<<(32-prefix.Bits()) - 2
	}
	return p, nil
}

// Pin reports the synthetic address of name, the same one while it lives. It
// fails if name is not a name, or if every address was used lately. The name
// counts as one that the policy spells out.
func (p *Pins) Pin(name policy.Host) (netip.Addr, error) {
	return p.pin(pinRequest{name: name, spelled: true})
}

// pin reports the address for c. How often a name is asked for, and by whom,
// makes no difference once it has one; whether it is spelled out is what the
// last to ask said, as a policy may change.
func (p *Pins) pin(c pinRequest) (netip.Addr, error) {
	if c.name.Name() == "" {
		return netip.Addr{}, errNoName
	}
	if p == nil || p.size == 0 {
		return netip.Addr{}, errPinsFull
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	e := p.byName[c.name]
	switch {
	case e != nil && e.in == p.listOf(c):
		p.touch(e, now)
		return p.addr(e.slot), nil
	case e != nil:
		p.unassign(e)
	case p.mayGrow(c):
		e = &pin{slot: len(p.bySlot)}
		p.bySlot = append(p.bySlot, e)
	default:
		if e = p.idle(c, now); e == nil {
			return netip.Addr{}, errPinsFull
		}
		p.unassign(e)
	}
	p.assign(e, c, now)
	return p.addr(e.slot), nil
}

// mayGrow reports whether c gets an address that nobody has had. Called with mu
// held, as are the functions below.
func (p *Pins) mayGrow(c pinRequest) bool {
	if len(p.bySlot) >= p.size {
		return false
	}
	return c.spelled || !p.overShare(c.owner)
}

// overShare reports whether a client has as many wild pins as it may, which is
// as many as it leaves for others.
func (p *Pins) overShare(client netip.Addr) bool {
	left := p.size - p.size/spelledShare - p.wild.Len()
	return left <= 0 || p.owned[client] != nil && p.owned[client].Len() > left
}

// idle reports the pin that changes hands for c, nil when none may.
func (p *Pins) idle(c pinRequest, now time.Time) *pin {
	oldest := last(p.wild)
	switch own := p.owned[c.owner]; {
	case c.spelled:
		if s := last(p.spelled); oldest == nil || s != nil && s.used.Before(oldest.used) {
			oldest = s
		}
	case own != nil && p.overShare(c.owner):
		oldest = last(own)
	}
	if oldest == nil || now.Sub(oldest.used) < pinHold {
		return nil
	}
	return oldest
}

// last reports the pin of l that is idle for longest, nil for none.
func last(l *list.List) *pin {
	if l.Len() == 0 {
		return nil
	}
	return l.Back().Value.(*pin)
}

// unassign removes e from its name and its lists.
func (p *Pins) unassign(e *pin) {
	delete(p.byName, e.name)
	e.in.Remove(e.at)
	if e.own == nil {
		return
	}
	own := p.owned[e.owner]
	own.Remove(e.own)
	e.own = nil
	if own.Len() == 0 {
		delete(p.owned, e.owner)
	}
}

// assign makes e the pin of c.
func (p *Pins) assign(e *pin, c pinRequest, now time.Time) {
	e.name, e.owner, e.used, e.in = c.name, c.owner, now, p.listOf(c)
	e.at = e.in.PushFront(e)
	p.byName[c.name] = e
	if c.spelled {
		return
	}
	if p.owned[c.owner] == nil {
		p.owned[c.owner] = list.New()
	}
	e.own = p.owned[c.owner].PushFront(e)
}

func (p *Pins) listOf(c pinRequest) *list.List {
	if c.spelled {
		return p.spelled
	}
	return p.wild
}

// touch marks e as used now.
func (p *Pins) touch(e *pin, now time.Time) {
	e.used = now
	e.in.MoveToFront(e.at)
	if e.own != nil {
		p.owned[e.owner].MoveToFront(e.own)
	}
}

// NameOf reports the name behind a. known is false for an address of the
// synthetic range that was never handed out; synthetic is false when a is not
// in the range at all. Asking counts as use: a connection arrived.
func (p *Pins) NameOf(a netip.Addr) (name policy.Host, known, synthetic bool) {
	a = a.Unmap()
	if p == nil || !p.prefix.Contains(a) {
		return policy.Host{}, false, false
	}
	slot, ok := p.slot(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || slot >= len(p.bySlot) {
		return policy.Host{}, false, true
	}
	e := p.bySlot[slot]
	p.touch(e, time.Now())
	return e.name, true, true
}

// addr is the address of slot: 254 of every 256, from .1 to .254.
func (p *Pins) addr(slot int) netip.Addr {
	n := p.base + uint32(slot/254)*256 + uint32(slot%254) + 1
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// slot is the inverse of addr; false for addresses that are never handed out.
func (p *Pins) slot(a netip.Addr) (int, bool) {
	b := a.As4()
	off := binary.BigEndian.Uint32(b[:]) - p.base
	last := off % 256
	if last == 0 || last == 255 {
		return 0, false
	}
	slot := int(off/256)*254 + int(last) - 1
	return slot, slot < p.size
}

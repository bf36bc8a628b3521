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
	// pinQuarantine is how long an address stays with its name after it was
	// last handed out or connected to. Ten times syntheticTTL.
	pinQuarantine = 10 * time.Minute
)

var errPinsFull = errors.New("every synthetic address is in use")

// Pins is the table of synthetic addresses: bounded, safe for concurrent use.
// It implements proxy.Names. The zero Pins hands out nothing.
//
// An address stays with its name while either is used. When all are taken the
// one idle for longest goes to the new name, but not within ten minutes of its
// last use; until then Pin fails.
//
// Threat: a client keeps an old answer, the address meanwhile means another
// name -> clients may keep answers for a minute, and ten pass before an address
// changes hands; the connection is judged by the name the address has now.
// Left over: such a client reaches another allowed name than it meant (where
// TLS is spoken the SNI gives it away and it is denied).
type Pins struct {
	prefix netip.Prefix
	base   uint32
	size   int // addresses that may be handed out

	mu     sync.Mutex
	byName map[policy.Host]*list.Element // of *pin
	bySlot []*list.Element
	recent *list.List // front: used last
}

type pin struct {
	name policy.Host
	slot int
	used time.Time
}

// NewPins hands out addresses from prefix (zero: 198.18.0.0/15, RFC 2544), an
// IPv4 prefix of at most 30 bits. Addresses that end in .0 or .255 and the
// prefix's first and last are left out: some programs take them for networks.
func NewPins(prefix netip.Prefix) (*Pins, error) {
	if prefix == (netip.Prefix{}) {
		prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, 0}), 15)
	}
	if !prefix.IsValid() || !prefix.Addr().Is4() || prefix.Bits() > 30 || prefix != prefix.Masked() {
		return nil, fmt.Errorf("synthetic addresses from %q: give an IPv4 network of at most 30 bits, like 198.18.0.0/15", prefix)
	}
	p := &Pins{prefix: prefix, byName: make(map[policy.Host]*list.Element), recent: list.New()}
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
// fails when name is no name, or when every address was used lately.
func (p *Pins) Pin(name policy.Host) (netip.Addr, error) {
	if name.Name() == "" {
		return netip.Addr{}, errNoName
	}
	if p == nil || p.size == 0 {
		return netip.Addr{}, errPinsFull
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if e, ok := p.byName[name]; ok {
		p.touch(e, now)
		return p.addr(e.Value.(*pin).slot), nil
	}
	if len(p.bySlot) < p.size {
		e := p.recent.PushFront(&pin{name: name, slot: len(p.bySlot), used: now})
		p.bySlot = append(p.bySlot, e)
		p.byName[name] = e
		return p.addr(e.Value.(*pin).slot), nil
	}
	e := p.recent.Back()
	old := e.Value.(*pin)
	if now.Sub(old.used) < pinQuarantine {
		return netip.Addr{}, errPinsFull
	}
	delete(p.byName, old.name)
	old.name = name
	p.byName[name] = e
	p.touch(e, now)
	return p.addr(old.slot), nil
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
	return e.Value.(*pin).name, true, true
}

// touch marks e as used now. Called with mu held.
func (p *Pins) touch(e *list.Element, now time.Time) {
	e.Value.(*pin).used = now
	p.recent.MoveToFront(e)
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

package lists

import (
	"hash/maphash"
	"math/bits"
)

// table finds names in a text: open addressing with linear probing, two thirds
// full at most. A slot is the offset of a name, its scope and four bits of its
// hash; zero is free. Names are compared in the text.
type table struct {
	text  []byte
	seed  maphash.Seed
	slots []uint32
	names int
	below bool // a name is there with those below it
}

// newTable makes a table for about n names.
func newTable(text []byte, n int) table {
	return table{text: text, seed: maphash.MakeSeed(), slots: make([]uint32, slotsFor(n))}
}

func slotsFor(n int) int { return n + n/2 + 2 }

// fit makes the table smaller where the text held few names for its lines.
func (t *table) fit() {
	if want := slotsFor(t.names); want < len(t.slots)/4*3 {
		t.resize(want)
	}
}

func (t *table) resize(n int) {
	old := t.slots
	t.slots = make([]uint32, n)
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := int(offset(slot))
		i, tag := t.home(maphash.Bytes(t.seed, t.text[at:t.nameEnd(at)]))
		for t.slots[i] != 0 {
			i = t.after(i)
		}
		t.slots[i] = slot&(1<<tagShift-1) | tag
	}
}

func offset(slot uint32) uint32 { return slot & (1<<offsetBits - 1) }

func scopeOf(slot uint32) Scope { return Scope(slot >> offsetBits & 3) }

// home reports where a name of this hash belongs, and its tag.
func (t *table) home(hash uint64) (i int, tag uint32) {
	hi, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(hi), uint32(hash) << tagShift
}

func (t *table) after(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// What became of a name that was added.
type outcome uint8

const (
	added   outcome = iota
	again           // the same stands there already
	crowded         // too many rules with ports are about it: it was not added
)

// add files the name at offset at.
func (t *table) add(at int, name []byte, scope Scope) outcome {
	if t.names >= len(t.slots)/3*2 {
		t.resize(2 * len(t.slots))
	}
	i, tag := t.home(maphash.Bytes(t.seed, name))
	same := 0
	for ; t.slots[i] != 0; i = t.after(i) {
		have := int(offset(t.slots[i]))
		if t.slots[i]>>tagShift<<tagShift != tag || !t.stands(have, string(name)) {
			continue
		}
		if scopeOf(t.slots[i]) == scope && !t.ported(have+len(name)) && !t.ported(at+len(name)) {
			return again
		}
		if same++; same == maxSameName {
			return crowded
		}
	}
	t.slots[i] = uint32(at) | uint32(scope)<<offsetBits | tag
	t.names++
	t.below = t.below || scope&Below != 0
	return added
}

// bare reports whether the name is there with this scope and no ports.
func (t *table) bare(name []byte, scope Scope) bool {
	i, tag := t.home(maphash.Bytes(t.seed, name))
	for ; t.slots[i] != 0; i = t.after(i) {
		at := int(offset(t.slots[i]))
		if t.slots[i]>>tagShift<<tagShift == tag && scopeOf(t.slots[i]) == scope && t.stands(at, string(name)) && !t.ported(at+len(name)) {
			return true
		}
	}
	return false
}

// ported reports whether ports follow a name that ends at end.
func (t *table) ported(end int) bool { return end < len(t.text) && t.text[end] == ':' }

// stands reports whether exactly this name stands at offset at.
func (t *table) stands(at int, name string) bool {
	end := at + len(name)
	return end <= len(t.text) && string(t.text[at:end]) == name && (end == len(t.text) || !nameByte(t.text[end]))
}

// nameEnd reports where the name that begins at offset at ends.
func (t *table) nameEnd(at int) int {
	for at < len(t.text) && nameByte(t.text[at]) {
		at++
	}
	return at
}

// nameByte reports whether c can be part of a canonical name, its dots included.
func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// Found walks the places of one name. The zero Found is at its end.
type Found struct {
	t    *table
	name string
	want Scope
	tag  uint32
	slot int

	// Scope is what the rule covers that Next reported last.
	Scope Scope
}

// Find reports the rules that cover what want says of name: Apex, the name itself;
// Below, the names below it; both, either of them. It allocates nothing.
func (l *List) Find(name string, want Scope) Found {
	if name == "" || want == Below && !l.below {
		return Found{}
	}
	f := Found{t: &l.table, name: name, want: want}
	f.slot, f.tag = l.home(maphash.String(l.seed, name))
	return f
}

// Next reports the offset of the next one, for At.
func (f *Found) Next() (at uint32, ok bool) {
	if f.t == nil {
		return 0, false
	}
	for {
		slot := f.t.slots[f.slot]
		if slot == 0 {
			f.t = nil
			return 0, false
		}
		f.slot = f.t.after(f.slot)
		if slot>>tagShift<<tagShift == f.tag && scopeOf(slot)&f.want != 0 && f.t.stands(int(offset(slot)), f.name) {
			f.Scope = scopeOf(slot)
			return offset(slot), true
		}
	}
}

// Ported reports whether the rule at that offset lists ports.
func (l *List) Ported(at uint32) bool { return l.ported(l.nameEnd(int(at))) }

package shell

import (
	"slices"
	"strconv"
	"strings"
)

type varKind byte

const (
	plainVar varKind = iota
	indexedVar
	assocVar
)

// variable is one name's value and attributes.
type variable struct {
	kind  varKind
	isSet bool // it has a value, not only attributes
	str   string
	list  *indexed
	pairs *assoc

	exported, readonly, integer, lower, upper, capital, ref, trace bool
	shared                                                         bool // list or pairs belong to another shell, too
}

// flags are the attributes as declare -p prints them.
func (v *variable) flags() string {
	b := []byte{}
	for _, f := range []struct {
		on bool
		c  byte
	}{
		{v.kind == indexedVar, 'a'},
		{v.kind == assocVar, 'A'},
		{v.integer, 'i'},
		{v.ref, 'n'},
		{v.readonly, 'r'},
		{v.trace, 't'},
		{v.exported, 'x'},
		{v.capital, 'c'},
		{v.lower, 'l'},
		{v.upper, 'u'},
	} {
		if f.on {
			b = append(b, f.c)
		}
	}
	if len(b) == 0 {
		return "-"
	}
	return string(b)
}

// own makes the elements the variable's alone, before they are changed.
func (v *variable) own() {
	if !v.shared {
		return
	}
	if v.list != nil {
		v.list = &indexed{slices.Clone(v.list.elems)}
	}
	if v.pairs != nil {
		v.pairs = v.pairs.clone()
	}
	v.shared = false
}

type elem struct {
	at  int64
	val string
}

// indexed is a sparse array: its elements, ascending.
type indexed struct{ elems []elem }

func (a *indexed) find(at int64) (int, bool) {
	if at >= 0 && at < int64(len(a.elems)) && a.elems[at].at == at {
		return int(at), true
	}
	if n := len(a.elems); n == 0 || a.elems[n-1].at < at {
		return n, false
	}
	return slices.BinarySearchFunc(a.elems, at, func(e elem, at int64) int {
		switch {
		case e.at < at:
			return -1
		case e.at > at:
			return 1
		}
		return 0
	})
}

func (a *indexed) get(at int64) (string, bool) {
	if i, ok := a.find(at); ok {
		return a.elems[i].val, true
	}
	return "", false
}

func (a *indexed) set(at int64, s string) {
	i, ok := a.find(at)
	if ok {
		a.elems[i].val = s
		return
	}
	a.elems = slices.Insert(a.elems, i, elem{at, s})
}

func (a *indexed) remove(at int64) {
	if i, ok := a.find(at); ok {
		a.elems = slices.Delete(a.elems, i, i+1)
	}
}

// next is the index after the last one.
func (a *indexed) next() int64 {
	if len(a.elems) == 0 {
		return 0
	}
	return a.elems[len(a.elems)-1].at + 1
}

func (a *indexed) values() []string {
	out := make([]string, len(a.elems))
	for i, e := range a.elems {
		out[i] = e.val
	}
	return out
}

func (a *indexed) keys() []string {
	out := make([]string, len(a.elems))
	for i, e := range a.elems {
		out[i] = strconv.FormatInt(e.at, 10)
	}
	return out
}

func listOf(vals []string) *indexed {
	a := &indexed{make([]elem, len(vals))}
	for i, v := range vals {
		a.elems[i] = elem{int64(i), v}
	}
	return a
}

// assoc is an associative array that is walked in bash's order: that of its
// hash table, where a bucket holds the newest first.
type assoc struct {
	vals  map[string]string
	since map[string]int
	count int
}

func newAssoc() *assoc { return &assoc{vals: map[string]string{}, since: map[string]int{}} }

func (a *assoc) set(k, v string) {
	if _, ok := a.vals[k]; !ok {
		a.count++
		a.since[k] = a.count
	}
	a.vals[k] = v
}

func (a *assoc) remove(k string) {
	delete(a.vals, k)
	delete(a.since, k)
}

func (a *assoc) clone() *assoc {
	c := newAssoc()
	for k, v := range a.vals {
		c.vals[k], c.since[k] = v, a.since[k]
	}
	c.count = a.count
	return c
}

// keys are in the order that bash's table of 1024 buckets (more when it is
// twice as full) is walked in.
func (a *assoc) keys() []string {
	buckets := uint32(1024)
	for len(a.vals) >= int(buckets)*2 {
		buckets *= 4
	}
	keys := make([]string, 0, len(a.vals))
	for k := range a.vals {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		hx, hy := hash(x)&(buckets-1), hash(y)&(buckets-1)
		if hx != hy {
			return int(hx) - int(hy)
		}
		return a.since[y] - a.since[x]
	})
	return keys
}

func (a *assoc) values() []string {
	keys := a.keys()
	for i, k := range keys {
		keys[i] = a.vals[k]
	}
	return keys
}

// hash is FNV-1 over signed bytes, as bash's hashlib.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h *= 16777619
		h ^= uint32(int32(int8(s[i])))
	}
	return h
}

// scalar is the value that $name without a subscript has.
func (v *variable) scalar() (string, bool) {
	switch v.kind {
	case indexedVar:
		return v.list.get(0)
	case assocVar:
		s, ok := v.pairs.vals["0"]
		return s, ok
	}
	return v.str, v.isSet
}

func (v *variable) values() []string {
	switch v.kind {
	case indexedVar:
		return v.list.values()
	case assocVar:
		return v.pairs.values()
	}
	if v.isSet {
		return []string{v.str}
	}
	return nil
}

func (v *variable) keys() []string {
	switch v.kind {
	case indexedVar:
		return v.list.keys()
	case assocVar:
		return v.pairs.keys()
	}
	if v.isSet {
		return []string{"0"}
	}
	return nil
}

func (v *variable) size() int64 {
	n := int64(len(v.str))
	if v.list != nil {
		for _, e := range v.list.elems {
			n += int64(len(e.val)) + 24
		}
	}
	if v.pairs != nil {
		for k, s := range v.pairs.vals {
			n += int64(len(k)+len(s)) + 64
		}
	}
	return n
}

func validName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// splitSubscript cuts "a[i]" in two; ok is false when text is no such place.
func splitSubscript(text string) (name, index string, ok bool) {
	i := strings.IndexByte(text, '[')
	if i <= 0 || !strings.HasSuffix(text, "]") || !validName(text[:i]) {
		return "", "", false
	}
	return text[:i], text[i+1 : len(text)-1], true
}

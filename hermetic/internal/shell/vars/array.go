package vars

import (
	"slices"
	"strconv"
)

// Elem is one element of a List.
type Elem struct {
	At  int64
	Val string
}

// List is a sparse array: its elements, by ascending subscript.
type List struct{ Elems []Elem }

// Find is the index in Elems of the element with subscript at, or where it
// would be; ok reports whether it is there.
func (a *List) Find(at int64) (int, bool) {
	if at >= 0 && at < int64(len(a.Elems)) && a.Elems[at].At == at {
		return int(at), true
	}
	if n := len(a.Elems); n == 0 || a.Elems[n-1].At < at {
		return n, false
	}
	return slices.BinarySearchFunc(a.Elems, at, func(e Elem, at int64) int {
		switch {
		case e.At < at:
			return -1
		case e.At > at:
			return 1
		}
		return 0
	})
}

// Get is the element of subscript at.
func (a *List) Get(at int64) (string, bool) {
	if i, ok := a.Find(at); ok {
		return a.Elems[i].Val, true
	}
	return "", false
}

// Set gives the element of subscript at a value.
func (a *List) Set(at int64, s string) {
	i, ok := a.Find(at)
	if ok {
		a.Elems[i].Val = s
		return
	}
	a.Elems = slices.Insert(a.Elems, i, Elem{at, s})
}

// Remove removes the element of subscript at.
func (a *List) Remove(at int64) {
	if i, ok := a.Find(at); ok {
		a.Elems = slices.Delete(a.Elems, i, i+1)
	}
}

// Next is the subscript after the last one.
func (a *List) Next() int64 {
	if len(a.Elems) == 0 {
		return 0
	}
	return a.Elems[len(a.Elems)-1].At + 1
}

func (a *List) values() []string {
	out := make([]string, len(a.Elems))
	for i, e := range a.Elems {
		out[i] = e.Val
	}
	return out
}

func (a *List) keys() []string {
	out := make([]string, len(a.Elems))
	for i, e := range a.Elems {
		out[i] = strconv.FormatInt(e.At, 10)
	}
	return out
}

// ListOf makes an array of vals, from subscript 0 on.
func ListOf(vals []string) *List {
	a := &List{make([]Elem, len(vals))}
	for i, v := range vals {
		a.Elems[i] = Elem{int64(i), v}
	}
	return a
}

// Pairs is an associative array. It is listed in bash's order: that of its hash
// table, whose buckets begin with the newest element.
type Pairs struct {
	Vals  map[string]string
	since map[string]int
	count int
}

// NewPairs makes an empty associative array.
func NewPairs() *Pairs { return &Pairs{Vals: map[string]string{}, since: map[string]int{}} }

// Set gives the element k the value v.
func (a *Pairs) Set(k, v string) {
	if _, ok := a.Vals[k]; !ok {
		a.count++
		a.since[k] = a.count
	}
	a.Vals[k] = v
}

// Remove removes the element k.
func (a *Pairs) Remove(k string) {
	delete(a.Vals, k)
	delete(a.since, k)
}

func (a *Pairs) clone() *Pairs {
	c := NewPairs()
	for k, v := range a.Vals {
		c.Vals[k], c.since[k] = v, a.since[k]
	}
	c.count = a.count
	return c
}

// Keys lists the keys in the order of bash's table, which has 1024 buckets, or
// more when it is twice as full.
func (a *Pairs) Keys() []string {
	buckets := uint32(1024)
	for len(a.Vals) >= int(buckets)*2 {
		buckets *= 4
	}
	keys := make([]string, 0, len(a.Vals))
	for k := range a.Vals {
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

func (a *Pairs) values() []string {
	keys := a.Keys()
	for i, k := range keys {
		keys[i] = a.Vals[k]
	}
	return keys
}

// hash is FNV-1 over signed bytes, as in bash's hashlib.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h *= 16777619
		h ^= uint32(int32(int8(s[i])))
	}
	return h
}

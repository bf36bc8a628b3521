// Package value is what programs of jq compute with: nil, bool, float64, string,
// []any and *Object, whose keys keep their order; how JSON is read, and printed as
// jq prints it.
package value

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Values are nil, bool, float64, literal, string, []any and *object. They are
// never changed once made, save as appended and object say.

// Literal is a whole number that a float64 may not hold, as it was written.
type Literal struct {
	F    float64
	Text string
}

// Object is one state of a map that keeps its keys in order. Setting a key in
// the newest state changes the shared core and leaves a note in the old state,
// which makes a core of its own when it is looked at again: so that building
// an object key by key costs one step a key.
type Object struct {
	core *core
	next *Object // a newer state, which has the core
	key  string  // what next changed, and what was there
	old  any
	had  bool
}

type core struct {
	keys []string
	m    map[string]any
}

// NewObject is an empty object with room for n keys.
func NewObject(n int) *Object { return &Object{core: &core{m: make(map[string]any, n)}} }

// state is o's core, made anew when a newer state has taken it.
func (o *Object) state() *core {
	if o.core != nil {
		return o.core
	}
	var newer []*Object
	at := o
	for ; at.core == nil; at = at.next {
		newer = append(newer, at)
	}
	c := &core{keys: slices.Clone(at.core.keys), m: make(map[string]any, len(at.core.m))}
	for k, v := range at.core.m {
		c.m[k] = v
	}
	for _, s := range slices.Backward(newer) {
		if s.had {
			c.m[s.key] = s.old
		} else {
			delete(c.m, s.key)
			c.keys = c.keys[:len(c.keys)-1]
		}
	}
	o.core, o.next, o.old = c, nil, nil
	return c
}

func (o *Object) Len() int { return len(o.state().m) }

// Get is the value of a key; false: there is none.
func (o *Object) Get(k string) (any, bool) {
	v, ok := o.state().m[k]
	return v, ok
}

// Keys are in the order in which they came; the caller does not change them.
func (o *Object) Keys() []string { return o.state().keys }

// Sorted are the keys in the order of the alphabet.
func (o *Object) Sorted() []string { return slices.Sorted(slices.Values(o.Keys())) }

// Set is o with k.
func (o *Object) Set(k string, v any) *Object {
	c := o.state()
	old, had := c.m[k]
	if !had {
		c.keys = append(c.keys, k)
	}
	c.m[k] = v
	n := &Object{core: c}
	*o = Object{next: n, key: k, old: old, had: had}
	return n
}

// Without is o without k.
func (o *Object) Without(k string) *Object {
	c := o.state()
	if _, ok := c.m[k]; !ok {
		return o
	}
	n := NewObject(len(c.m))
	for _, key := range c.keys {
		if key != k {
			n.Put(key, c.m[key])
		}
	}
	return n
}

// Put sets a key while the object is being made, before anybody else has it.
func (o *Object) Put(k string, v any) {
	if _, had := o.core.m[k]; !had {
		o.core.keys = append(o.core.keys, k)
	}
	o.core.m[k] = v
}

// free marks the room behind an array that nobody has used yet.
type free struct{}

// Appended is a and more; it uses the free room behind a when it can.
func Appended(a []any, more ...any) []any {
	n := len(a)
	if cap(a)-n >= len(more) && len(more) > 0 {
		if whole := a[:n+len(more)]; whole[n] == any(free{}) {
			copy(whole[n:], more)
			return whole
		}
	}
	out := make([]any, 0, (n+len(more))*3/2+4)
	out = append(append(out, a...), more...)
	room := out[len(out):cap(out)]
	for i := range room {
		room[i] = free{}
	}
	return out
}

// Number is the number that v is; false: it is none.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case Literal:
		return v.F, true
	}
	return 0, false
}

// Truthy reports whether v is neither null nor false.
func Truthy(v any) bool {
	b, ok := v.(bool)
	return v != nil && (!ok || b)
}

// TypeName is what jq's type says of v.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case *Object:
		return "object"
	}
	return "number"
}

// Rank is the place of the type of v in the order of types.
func Rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case string:
		return 4
	case []any:
		return 5
	case *Object:
		return 6
	}
	return 3
}

// Compare is jq's order of all values; nan is below every number.
func Compare(a, b any) int {
	if d := Rank(a) - Rank(b); d != 0 {
		return d
	}
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case []any:
		return slices.CompareFunc(a, b.([]any), Compare)
	case *Object:
		return compareObjects(a, b.(*Object))
	}
	x, ok := Number(a)
	if !ok {
		return 0
	}
	y, _ := Number(b)
	if x == y {
		return compareLiterals(a, b)
	}
	if math.IsNaN(x) {
		return -1
	}
	return cmp.Compare(x, y)
}

// compareLiterals tells whole numbers apart that are one float64.
func compareLiterals(a, b any) int {
	x, ok := a.(Literal)
	y, both := b.(Literal)
	if !ok || !both || x.Text == y.Text {
		return 0
	}
	xs, ys := strings.TrimPrefix(x.Text, "-"), strings.TrimPrefix(y.Text, "-")
	d := cmp.Or(cmp.Compare(len(xs), len(ys)), strings.Compare(xs, ys))
	if x.F < 0 {
		return -d
	}
	return d
}

func compareObjects(a, b *Object) int {
	ka, kb := a.Sorted(), b.Sorted()
	if d := slices.Compare(ka, kb); d != 0 {
		return d
	}
	for _, k := range ka {
		x, _ := a.Get(k)
		y, _ := b.Get(k)
		if d := Compare(x, y); d != 0 {
			return d
		}
	}
	return 0
}

// Equal reports whether a == b.
func Equal(a, b any) bool {
	x, ok := Number(a)
	if y, both := Number(b); ok && both && (math.IsNaN(x) || math.IsNaN(y)) {
		return false
	}
	return Compare(a, b) == 0
}

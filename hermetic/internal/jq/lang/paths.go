package lang

import (
	"cmp"
	"math"
	"slices"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// indexKeys evaluates what stands in an index: a key, or a slice as jq's object
// of start and end.
func (m *Machine) indexKeys(i *gojq.Index, s *Scope, in Item, out func(any) error) error {
	switch {
	case i.Name != "":
		return out(i.Name)
	case i.Str != nil:
		return m.text(i.Str, "@text", s, in, func(k string) error { return out(k) })
	case !i.IsSlice:
		return m.values(i.Start, s, in, out)
	}
	bound := func(q *gojq.Query, then func(any) error) error {
		if q == nil {
			return then(nil)
		}
		return m.values(q, s, in, then)
	}
	return bound(i.Start, func(start any) error {
		return bound(i.End, func(end any) error {
			slice := value.NewObject(2)
			slice.Put("start", start)
			slice.Put("end", end)
			return out(slice)
		})
	})
}

func (m *Machine) index(in Item, key any, out Emit) error {
	if in.path == noPath {
		return Failf("Invalid path expression near attempt to access element %s of %s", value.Tojson(key), value.Tojson(in.V))
	}
	v, err := indexValue(in.V, key)
	if err != nil {
		return err
	}
	return out(in.at(key, v))
}

// at is v at key of in.
func (in Item) at(key, v any) Item {
	if in.path == nil {
		return Item{V: v}
	}
	return Item{v, &path{in.path, key}}
}

func (m *Machine) iterate(in Item, out Emit) error {
	if in.path == noPath {
		return Failf("Invalid path expression near attempt to iterate through %s", value.Tojson(in.V))
	}
	switch v := in.V.(type) {
	case []any:
		for i, e := range v {
			if err := out(in.at(float64(i), e)); err != nil {
				return err
			}
		}
	case *value.Object:
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			if err := out(in.at(k, e)); err != nil {
				return err
			}
		}
	default:
		return Failf("Cannot iterate over %s", described(v))
	}
	return nil
}

// recurse is "..".
func (m *Machine) recurse(in Item, out Emit) error {
	m.Depth++
	defer func() { m.Depth-- }()
	if m.Depth > MaxDepth {
		return errDepth
	}
	if err := m.step(); err != nil {
		return err
	}
	if err := out(in); err != nil {
		return err
	}
	switch in.V.(type) {
	case []any, *value.Object:
		return m.iterate(in, func(x Item) error { return m.recurse(x, out) })
	}
	return nil
}

// indexValue is v[key].
func indexValue(v, key any) (any, error) {
	switch k := key.(type) {
	case string:
		switch v := v.(type) {
		case nil:
			return nil, nil
		case *value.Object:
			e, _ := v.Get(k)
			return e, nil
		}
		return nil, Failf("Cannot index %s with string %s", value.TypeName(v), value.Tojson(k))
	case *value.Object:
		return sliceValue(v, k)
	case nil:
		if v == nil {
			return nil, nil
		}
	case []any:
		if a, ok := v.([]any); ok {
			return indicesOf(a, k), nil
		}
	}
	f, ok := value.Number(key)
	if a, isArray := v.([]any); ok && isArray {
		if math.IsNaN(f) {
			return nil, nil
		}
		f = math.Floor(f)
		if f < 0 {
			f += float64(len(a))
		}
		if f < 0 || f >= float64(len(a)) {
			return nil, nil
		}
		return a[int(f)], nil
	}
	if ok && v == nil {
		return nil, nil
	}
	return nil, Failf("Cannot index %s with %s", value.TypeName(v), value.TypeName(key))
}

// sliceBounds turns start and end into positions in something n long.
func sliceBounds(s *value.Object, n int) (int, int, error) {
	at := func(name string, def float64) (float64, bool) {
		v, _ := s.Get(name)
		if v == nil {
			return def, true
		}
		f, ok := value.Number(v)
		if f < 0 {
			f += float64(n)
		}
		return min(max(f, 0), float64(n)), ok
	}
	from, ok1 := at("start", 0)
	to, ok2 := at("end", float64(n))
	if !ok1 || !ok2 {
		return 0, 0, Failf("Start and end indices of an array slice must be numbers")
	}
	lo, hi := int(math.Floor(from)), int(math.Ceil(to))
	return lo, max(lo, hi), nil
}

func sliceValue(v any, s *value.Object) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		lo, hi, err := sliceBounds(s, len(v))
		if err != nil {
			return nil, err
		}
		return v[lo:hi:hi], nil
	case string:
		r := []rune(v)
		lo, hi, err := sliceBounds(s, len(r))
		if err != nil {
			return nil, err
		}
		return string(r[lo:hi]), nil
	}
	return nil, Failf("Cannot index %s with object", value.TypeName(v))
}

// getPath is the value at keys; below null all is null.
func getPath(v any, keys []any) (any, error) {
	for _, k := range keys {
		if v == nil {
			return nil, nil
		}
		var err error
		if v, err = indexValue(v, k); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// setPath is v with x at keys.
func setPath(v any, keys []any, x any) (any, error) {
	if len(keys) == 0 {
		return x, nil
	}
	old, err := indexValue(v, keys[0])
	if err != nil {
		return nil, err
	}
	if x, err = setPath(old, keys[1:], x); err != nil {
		return nil, err
	}
	return setKey(v, keys[0], x)
}

func setKey(v, key, x any) (any, error) {
	switch k := key.(type) {
	case string:
		if v == nil {
			v = value.NewObject(1)
		}
		if o, ok := v.(*value.Object); ok {
			return o.Set(k, x), nil
		}
	case *value.Object:
		return setSlice(v, k, x)
	}
	f, ok := value.Number(key)
	a, isArray := v.([]any)
	if !ok || !isArray && v != nil {
		return nil, Failf("Cannot update field at %s index of %s", value.TypeName(key), value.TypeName(v))
	}
	if f < 0 {
		if f += float64(len(a)); f < 0 {
			return nil, Failf("Out of bounds negative array index")
		}
	}
	if f > 1<<24 {
		return nil, Failf("Array index too large")
	}
	i := int(f)
	if i == len(a) {
		return value.Appended(a, x), nil
	}
	out := make([]any, max(len(a), i+1))
	copy(out, a)
	out[i] = x
	return out, nil
}

func setSlice(v any, s *value.Object, x any) (any, error) {
	a, ok := v.([]any)
	if !ok && v != nil {
		return nil, Failf("Cannot update field at object index of %s", value.TypeName(v))
	}
	in, ok := x.([]any)
	if !ok {
		return nil, Failf("A slice of an array can only be assigned another array")
	}
	lo, hi, err := sliceBounds(s, len(a))
	if err != nil {
		return nil, err
	}
	return slices.Concat(a[:lo], in, a[hi:]), nil
}

// deletePaths is v without what lies at paths.
func deletePaths(v any, paths []any) (any, error) {
	paths = slices.Clone(paths)
	for i, p := range paths {
		paths[i] = fromFront(v, p)
	}
	slices.SortFunc(paths, value.Compare)
	for _, p := range slices.Backward(paths) {
		keys, ok := p.([]any)
		if !ok {
			return nil, Failf("Path must be specified as an array")
		}
		var err error
		if v, err = deletePath(v, keys); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// fromFront makes a last index that counts from an array's end one that counts
// from its front: what is deleted before it does not move it then.
func fromFront(v, p any) any {
	keys, ok := p.([]any)
	if !ok || len(keys) == 0 {
		return p
	}
	f, ok := value.Number(keys[len(keys)-1])
	if !ok || f >= 0 {
		return p
	}
	parent, err := getPath(v, keys[:len(keys)-1])
	if list, ok := parent.([]any); err == nil && ok && f+float64(len(list)) >= 0 {
		keys = slices.Clone(keys)
		keys[len(keys)-1] = f + float64(len(list))
	}
	return keys
}

func deletePath(v any, keys []any) (any, error) {
	if len(keys) == 0 || v == nil {
		return nil, nil
	}
	if len(keys) > 1 {
		inner, err := indexValue(v, keys[0])
		if err != nil {
			return nil, err
		}
		if inner == nil {
			return v, nil
		}
		if inner, err = deletePath(inner, keys[1:]); err != nil {
			return nil, err
		}
		return setKey(v, keys[0], inner)
	}
	return deleteKey(v, keys[0])
}

func deleteKey(v, key any) (any, error) {
	switch v := v.(type) {
	case *value.Object:
		if k, ok := key.(string); ok {
			return v.Without(k), nil
		}
		return nil, Failf("Cannot delete field at object index of %s", cmp.Or(map[string]string{"number": "object"}[value.TypeName(key)], "object"))
	case []any:
		lo, hi := 0, 0
		if s, ok := key.(*value.Object); ok {
			var err error
			if lo, hi, err = sliceBounds(s, len(v)); err != nil {
				return nil, err
			}
		} else if f, ok := value.Number(key); ok {
			if f < 0 {
				f += float64(len(v))
			}
			if f < 0 || f >= float64(len(v)) {
				return v, nil
			}
			lo, hi = int(f), int(f)+1
		} else {
			return nil, Failf("Cannot delete field at array index of array")
		}
		return slices.Concat(v[:lo], v[hi:]), nil
	}
	return nil, Failf("Cannot delete field at %s index of %s", map[bool]string{true: "object", false: "array"}[value.TypeName(key) == "string"], value.TypeName(v))
}

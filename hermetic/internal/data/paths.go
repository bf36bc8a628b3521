package data

import (
	"cmp"
	"math"
	"slices"

	"github.com/itchyny/gojq"
)

// indexKeys evaluates what stands in an index: a key, or a slice as jq's object
// of start and end.
func (m *machine) indexKeys(i *gojq.Index, s *scope, in item, out func(any) error) error {
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
			slice := newObject(2)
			slice.put("start", start)
			slice.put("end", end)
			return out(slice)
		})
	})
}

func (m *machine) index(in item, key any, out emit) error {
	if in.path == noPath {
		return failf("Invalid path expression near attempt to access element %s of %s", tojson(key), tojson(in.v))
	}
	v, err := indexValue(in.v, key)
	if err != nil {
		return err
	}
	return out(in.at(key, v))
}

// at is v at key of in.
func (in item) at(key, v any) item {
	if in.path == nil {
		return item{v: v}
	}
	return item{v, &path{in.path, key}}
}

func (m *machine) iterate(in item, out emit) error {
	if in.path == noPath {
		return failf("Invalid path expression near attempt to iterate through %s", tojson(in.v))
	}
	switch v := in.v.(type) {
	case []any:
		for i, e := range v {
			if err := out(in.at(float64(i), e)); err != nil {
				return err
			}
		}
	case *object:
		for _, k := range v.keys() {
			e, _ := v.get(k)
			if err := out(in.at(k, e)); err != nil {
				return err
			}
		}
	default:
		return failf("Cannot iterate over %s", described(v))
	}
	return nil
}

// recurse is "..".
func (m *machine) recurse(in item, out emit) error {
	m.depth++
	defer func() { m.depth-- }()
	if m.depth > maxDepth {
		return errDepth
	}
	if err := m.step(); err != nil {
		return err
	}
	if err := out(in); err != nil {
		return err
	}
	switch in.v.(type) {
	case []any, *object:
		return m.iterate(in, func(x item) error { return m.recurse(x, out) })
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
		case *object:
			e, _ := v.get(k)
			return e, nil
		}
		return nil, failf("Cannot index %s with string %s", typeName(v), tojson(k))
	case *object:
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
	f, ok := number(key)
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
	return nil, failf("Cannot index %s with %s", typeName(v), typeName(key))
}

// sliceBounds turns start and end into positions in something n long.
func sliceBounds(s *object, n int) (int, int, error) {
	at := func(name string, def float64) (float64, bool) {
		v, _ := s.get(name)
		if v == nil {
			return def, true
		}
		f, ok := number(v)
		if f < 0 {
			f += float64(n)
		}
		return min(max(f, 0), float64(n)), ok
	}
	from, ok1 := at("start", 0)
	to, ok2 := at("end", float64(n))
	if !ok1 || !ok2 {
		return 0, 0, failf("Start and end indices of an array slice must be numbers")
	}
	lo, hi := int(math.Floor(from)), int(math.Ceil(to))
	return lo, max(lo, hi), nil
}

func sliceValue(v any, s *object) (any, error) {
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
	return nil, failf("Cannot index %s with object", typeName(v))
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
			v = newObject(1)
		}
		if o, ok := v.(*object); ok {
			return o.set(k, x), nil
		}
	case *object:
		return setSlice(v, k, x)
	}
	f, ok := number(key)
	a, isArray := v.([]any)
	if !ok || !isArray && v != nil {
		return nil, failf("Cannot update field at %s index of %s", typeName(key), typeName(v))
	}
	if f < 0 {
		if f += float64(len(a)); f < 0 {
			return nil, failf("Out of bounds negative array index")
		}
	}
	if f > 1<<24 {
		return nil, failf("Array index too large")
	}
	i := int(f)
	if i == len(a) {
		return appended(a, x), nil
	}
	out := make([]any, max(len(a), i+1))
	copy(out, a)
	out[i] = x
	return out, nil
}

func setSlice(v any, s *object, x any) (any, error) {
	a, ok := v.([]any)
	if !ok && v != nil {
		return nil, failf("Cannot update field at object index of %s", typeName(v))
	}
	in, ok := x.([]any)
	if !ok {
		return nil, failf("A slice of an array can only be assigned another array")
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
	slices.SortFunc(paths, compare)
	for _, p := range slices.Backward(paths) {
		keys, ok := p.([]any)
		if !ok {
			return nil, failf("Path must be specified as an array")
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
	f, ok := number(keys[len(keys)-1])
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
	case *object:
		if k, ok := key.(string); ok {
			return v.without(k), nil
		}
		return nil, failf("Cannot delete field at object index of %s", cmp.Or(map[string]string{"number": "object"}[typeName(key)], "object"))
	case []any:
		lo, hi := 0, 0
		if s, ok := key.(*object); ok {
			var err error
			if lo, hi, err = sliceBounds(s, len(v)); err != nil {
				return nil, err
			}
		} else if f, ok := number(key); ok {
			if f < 0 {
				f += float64(len(v))
			}
			if f < 0 || f >= float64(len(v)) {
				return v, nil
			}
			lo, hi = int(f), int(f)+1
		} else {
			return nil, failf("Cannot delete field at array index of array")
		}
		return slices.Concat(v[:lo], v[hi:]), nil
	}
	return nil, failf("Cannot delete field at %s index of %s", map[bool]string{true: "object", false: "array"}[typeName(key) == "string"], typeName(v))
}

package lang

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/jq/value"
)

type plain = func(m *Machine, v any, args []any) (any, error)

// functions are those of values alone.
func functions() map[string]plain {
	return map[string]plain{
		"length/0":         func(_ *Machine, v any, _ []any) (any, error) { return length(v) },
		"utf8bytelength/0": utf8length,
		"type/0":           func(_ *Machine, v any, _ []any) (any, error) { return value.TypeName(v), nil },
		"keys/0":           func(_ *Machine, v any, _ []any) (any, error) { return keysOf(v, true) },
		"keys_unsorted/0":  func(_ *Machine, v any, _ []any) (any, error) { return keysOf(v, false) },
		"has/1":            func(_ *Machine, v any, args []any) (any, error) { return has(v, args[0]) },
		"contains/1":       func(_ *Machine, v any, args []any) (any, error) { return contains(v, args[0]) },
		"add/0":            func(_ *Machine, v any, _ []any) (any, error) { return sum(v) },
		"tojson/0":         func(_ *Machine, v any, _ []any) (any, error) { return value.Tojson(v), nil },
		"tostring/0":       func(_ *Machine, v any, _ []any) (any, error) { return Tostring(v), nil },
		"tonumber/0":       tonumber,
		"toboolean/0":      toboolean,
		"fromjson/0":       fromjson,
		"format/1":         func(_ *Machine, v any, args []any) (any, error) { return format("@"+Tostring(args[0]), v) },
		"to_entries/0":     toEntries,
		"from_entries/0":   fromEntries,
		"setpath/2":        func(_ *Machine, v any, args []any) (any, error) { return setPathTo(v, args[0], args[1]) },
		"delpaths/1":       delpaths,
		"reverse/0":        reverse,
		"sort/0":           func(_ *Machine, v any, _ []any) (any, error) { return sorted(v, "sorted") },
		"unique/0":         unique,
		"min/0":            func(_ *Machine, v any, _ []any) (any, error) { return extreme(v, v, 1) },
		"max/0":            func(_ *Machine, v any, _ []any) (any, error) { return extreme(v, v, -1) },
		"_min_by/1":        func(_ *Machine, v any, args []any) (any, error) { return extreme(v, args[0], 1) },
		"_max_by/1":        func(_ *Machine, v any, args []any) (any, error) { return extreme(v, args[0], -1) },
		"_sort_by/1":       sortBy,
		"_group_by/1":      groupBy,
		"flatten/0":        func(_ *Machine, v any, _ []any) (any, error) { return flatten(v, math.MaxFloat64) },
		"flatten/1":        func(_ *Machine, v any, args []any) (any, error) { return flatten(v, args[0]) },
		"transpose/0":      transpose,
		"bsearch/1":        bsearch,
		"join/1":           join,
		"split/1":          splitString,
		"split/2":          splitRegex,
		"test/2":           tested,
		"explode/0":        explode,
		"implode/0":        implode,
		"ltrimstr/1":       trimmed(strings.CutPrefix),
		"rtrimstr/1":       trimmed(strings.CutSuffix),
		"startswith/1":     fixed("startswith", strings.HasPrefix),
		"endswith/1":       fixed("endswith", strings.HasSuffix),
		"trim/0":           spaceless(strings.TrimSpace),
		"ltrim/0":          spaceless(func(s string) string { return strings.TrimLeft(s, " \t\n\v\f\r") }),
		"rtrim/0":          spaceless(func(s string) string { return strings.TrimRight(s, " \t\n\v\f\r") }),
		"ascii_downcase/0": cased("ascii_downcase", 'A', 'Z'),
		"ascii_upcase/0":   cased("ascii_upcase", 'a', 'z'),
		"indices/1":        func(_ *Machine, v any, args []any) (any, error) { return indices(v, args[0]) },
		"index/1":          func(_ *Machine, v any, args []any) (any, error) { return oneIndex(v, args[0], false) },
		"rindex/1":         func(_ *Machine, v any, args []any) (any, error) { return oneIndex(v, args[0], true) },
		"infinite/0":       func(*Machine, any, []any) (any, error) { return math.Inf(1), nil },
		"nan/0":            func(*Machine, any, []any) (any, error) { return math.NaN(), nil },
		"null/0":           func(*Machine, any, []any) (any, error) { return nil, nil },
		"halt_error/1":     haltError,
		"_described/0":     func(_ *Machine, v any, _ []any) (any, error) { return described(v), nil },
		"_captured/0":      captured,
	}
}

func length(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return 0.0, nil
	case bool:
		return nil, Failf("%s has no length", described(v))
	case string:
		return float64(utf8.RuneCountInString(v)), nil
	case []any:
		return float64(len(v)), nil
	case *value.Object:
		return float64(v.Len()), nil
	}
	f, _ := value.Number(v)
	return math.Abs(f), nil
}

func utf8length(_ *Machine, v any, _ []any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, Failf("%s only strings have UTF-8 byte length", described(v))
	}
	return float64(len(s)), nil
}

func keysOf(v any, sorted bool) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = float64(i)
		}
		return out, nil
	case *value.Object:
		keys := v.Keys()
		if sorted {
			keys = v.Sorted()
		}
		out := make([]any, len(keys))
		for i, k := range keys {
			out[i] = k
		}
		return out, nil
	}
	return nil, Failf("%s has no keys", described(v))
}

func has(v, key any) (any, error) {
	switch v := v.(type) {
	case *value.Object:
		if k, ok := key.(string); ok {
			_, ok = v.Get(k)
			return ok, nil
		}
	case []any:
		if f, ok := value.Number(key); ok {
			return f >= 0 && f < float64(len(v)), nil
		}
	}
	return nil, Failf("Cannot check whether %s has a %s key", value.TypeName(v), value.TypeName(key))
}

func contains(a, b any) (any, error) {
	if value.TypeName(a) != value.TypeName(b) {
		return nil, Failf("%s and %s cannot have their containment checked", described(a), described(b))
	}
	return within(a, b), nil
}

func within(a, b any) bool {
	switch a := a.(type) {
	case *value.Object:
		o, ok := b.(*value.Object)
		if !ok {
			return false
		}
		for _, k := range o.Keys() {
			x, has := a.Get(k)
			y, _ := o.Get(k)
			if !has || !within(x, y) {
				return false
			}
		}
		return true
	case []any:
		list, ok := b.([]any)
		if !ok {
			return false
		}
		for _, y := range list {
			if !slices.ContainsFunc(a, func(x any) bool { return within(x, y) }) {
				return false
			}
		}
		return true
	case string:
		s, ok := b.(string)
		return ok && strings.Contains(a, s)
	}
	return value.Equal(a, b)
}

func sum(v any) (any, error) {
	var total any
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	if text, ok := concatenated(list); ok {
		return text, nil
	}
	for _, e := range list {
		var err error
		if f, ok := value.Number(e); ok {
			if g, both := value.Number(total); both {
				total = f + g
				continue
			}
		}
		if total, err = add(total, e); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// concatenated adds strings in one go.
func concatenated(list []any) (string, bool) {
	var b strings.Builder
	for _, e := range list {
		s, ok := e.(string)
		if !ok && e != nil {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), slices.ContainsFunc(list, func(v any) bool { return v != nil })
}

// Tostring is a string as it is, and anything else as JSON.
func Tostring(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return value.Tojson(v)
}

func tonumber(_ *Machine, v any, _ []any) (any, error) {
	if _, ok := value.Number(v); ok {
		return v, nil
	}
	s, ok := v.(string)
	if !ok {
		return nil, Failf("%s cannot be parsed as a number", described(v))
	}
	if s == "nan" {
		return math.NaN(), nil
	}
	if n, ok := value.ParseNumber(strings.Trim(s, " \t\r\n")); ok {
		return n, nil
	}
	return nil, Failf("Cannot parse '%s' as a number", s)
}

func toboolean(_ *Machine, v any, _ []any) (any, error) {
	switch v {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return nil, Failf("%s cannot be parsed as a boolean", described(v))
}

func fromjson(_ *Machine, v any, _ []any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, Failf("%s only strings can be parsed", described(v))
	}
	x, err := value.ParseJSON(s)
	if err != nil {
		return nil, Failf("%s", err)
	}
	return x, nil
}

func toEntries(_ *Machine, v any, _ []any) (any, error) {
	keys, err := keysOf(v, false)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, k := range keys.([]any) {
		e := value.NewObject(2)
		e.Put("key", k)
		x, _ := indexValue(v, k)
		e.Put("value", x)
		out = append(out, e)
	}
	return out, nil
}

// fromEntries takes key, k, name, Name, K and Key; and value, v, Value and V.
func fromEntries(_ *Machine, v any, _ []any) (any, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	out := value.NewObject(len(list))
	for _, e := range list {
		o, ok := e.(*value.Object)
		if !ok && e != nil {
			return nil, Failf("Cannot index %s with string \"key\"", value.TypeName(e))
		}
		if o == nil {
			o = value.NewObject(0)
		}
		key, val := entry(o)
		switch k := key.(type) {
		case string:
			out.Put(k, val)
		case nil:
			out.Put("null", val)
		case bool, float64, value.Literal:
			out.Put(value.Tojson(k), val)
		default:
			return nil, Failf("Cannot use %s as object key", described(key))
		}
	}
	return out, nil
}

func entry(o *value.Object) (key, val any) {
	for _, name := range []string{"key", "k", "name", "Name", "Key", "K"} {
		v, ok := o.Get(name)
		if ok && (value.Truthy(v) || v == false) {
			key = v
			break
		}
	}
	for _, name := range []string{"value", "v", "Value", "V"} {
		if v, ok := o.Get(name); ok && (v != nil || val == nil) {
			val = v
			if v != nil {
				break
			}
		}
	}
	return key, val
}

func setPathTo(v, p, x any) (any, error) {
	keys, ok := p.([]any)
	if !ok {
		return nil, Failf("Path must be specified as an array")
	}
	return setPath(v, keys, x)
}

func delpaths(_ *Machine, v any, args []any) (any, error) {
	paths, ok := args[0].([]any)
	if !ok {
		return nil, Failf("Paths must be specified as an array")
	}
	return deletePaths(v, paths)
}

func haltError(_ *Machine, v any, args []any) (any, error) {
	status, ok := value.Number(args[0])
	if !ok {
		return nil, Failf("halt_error/1: number required")
	}
	return nil, &Halted{int(status) & 255, v, true}
}

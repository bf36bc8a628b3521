package lang

import (
	"slices"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/jq/value"
)

func reverse(_ *Machine, v any, _ []any) (any, error) {
	switch v := v.(type) {
	case nil:
		return []any{}, nil
	case string:
		r := []rune(v)
		slices.Reverse(r)
		return string(r), nil
	case []any:
		out := slices.Clone(v)
		slices.Reverse(out)
		return out, nil
	}
	return nil, Failf("Cannot reverse %s", described(v))
}

func sorted(v any, what string) ([]any, error) {
	a, ok := v.([]any)
	if !ok {
		return nil, Failf("%s cannot be %s, as it is not an array", described(v), what)
	}
	out := append([]any{}, a...)
	slices.SortStableFunc(out, value.Compare)
	return out, nil
}

func unique(_ *Machine, v any, _ []any) (any, error) {
	a, err := sorted(v, "sorted")
	if err != nil {
		return nil, err
	}
	return slices.CompactFunc(a, func(x, y any) bool { return value.Compare(x, y) == 0 }), nil
}

// extreme is the value whose key is least, or greatest with sign -1: of equal
// ones the first least, the last greatest.
func extreme(v, by any, sign int) (any, error) {
	a, ok1 := v.([]any)
	keys, ok2 := by.([]any)
	if !ok1 || !ok2 {
		return nil, Failf("Cannot index %s with number", value.TypeName(v))
	}
	if len(a) == 0 {
		return nil, nil
	}
	best := 0
	for i := range a {
		if d := value.Compare(keys[i], keys[best]) * sign; d < 0 || d == 0 && sign < 0 {
			best = i
		}
	}
	return a[best], nil
}

type keyed struct{ v, key any }

func byKey(v, by any, what string) ([]keyed, error) {
	a, ok := v.([]any)
	keys, _ := by.([]any)
	if !ok || len(keys) != len(a) {
		return nil, Failf("%s cannot be %s, as it is not an array", described(v), what)
	}
	out := make([]keyed, len(a))
	for i := range a {
		out[i] = keyed{a[i], keys[i]}
	}
	slices.SortStableFunc(out, func(x, y keyed) int { return value.Compare(x.key, y.key) })
	return out, nil
}

func sortBy(_ *Machine, v any, args []any) (any, error) {
	list, err := byKey(v, args[0], "sorted")
	out := make([]any, len(list))
	for i, k := range list {
		out[i] = k.v
	}
	return out, err
}

func groupBy(_ *Machine, v any, args []any) (any, error) {
	list, err := byKey(v, args[0], "grouped")
	out := []any{}
	for i := 0; i < len(list); {
		group := []any{}
		from := i
		for ; i < len(list) && value.Compare(list[i].key, list[from].key) == 0; i++ {
			group = append(group, list[i].v)
		}
		out = append(out, group)
	}
	return out, err
}

func flatten(v, depth any) (any, error) {
	n, ok := value.Number(depth)
	if !ok {
		return nil, Failf("flatten depth must not be negative")
	}
	if n < 0 {
		return nil, Failf("flatten depth must not be negative")
	}
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	return flat([]any{}, list, n), nil
}

func flat(out, list []any, n float64) []any {
	for _, e := range list {
		if a, ok := e.([]any); ok && n > 0 {
			out = flat(out, a, n-1)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// elements are what .[] of v gives, in order.
func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case *value.Object:
		list := make([]any, 0, len(v.Keys()))
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			list = append(list, e)
		}
		return list, nil
	}
	return nil, Failf("Cannot iterate over %s", described(v))
}

func transpose(_ *Machine, v any, _ []any) (any, error) {
	rows, ok := v.([]any)
	if !ok {
		return nil, Failf("Cannot iterate over %s", described(v))
	}
	width := 0
	for _, r := range rows {
		a, ok := r.([]any)
		if !ok && r != nil {
			return nil, Failf("Cannot index %s with number", value.TypeName(r))
		}
		width = max(width, len(a))
	}
	out := make([]any, width)
	for i := range out {
		column := make([]any, len(rows))
		for j, r := range rows {
			if a, _ := r.([]any); i < len(a) {
				column[j] = a[i]
			}
		}
		out[i] = column
	}
	return out, nil
}

func bsearch(_ *Machine, v any, args []any) (any, error) {
	a, ok := v.([]any)
	if !ok {
		return nil, Failf("%s cannot be searched from", described(v))
	}
	i, found := slices.BinarySearchFunc(a, args[0], value.Compare)
	if found {
		return float64(i), nil
	}
	return float64(-1 - i), nil
}

func join(_ *Machine, v any, args []any) (any, error) {
	a, ok := v.([]any)
	if !ok {
		return nil, Failf("Cannot iterate over %s", described(v))
	}
	if len(a) == 0 {
		return "", nil
	}
	sep, ok := args[0].(string)
	if !ok && (len(a) > 1 || args[0] != nil) {
		return nil, Failf("%s and %s cannot be added", described(Tostring(a[0])), described(args[0]))
	}
	parts := make([]string, len(a))
	for i, e := range a {
		switch e.(type) {
		case nil:
		case []any, *value.Object:
			return nil, Failf("%s and %s cannot be added", described(strings.Join(parts[:i], sep)+sep), described(e))
		default:
			parts[i] = Tostring(e)
		}
	}
	return strings.Join(parts, sep), nil
}

func splitString(_ *Machine, v any, args []any) (any, error) {
	s, ok1 := v.(string)
	sep, ok2 := args[0].(string)
	if !ok1 || !ok2 {
		return nil, Failf("split input and separator must be strings")
	}
	return split(s, sep), nil
}

func explode(_ *Machine, v any, _ []any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, Failf("%s cannot be exploded", described(v))
	}
	out := make([]any, 0, len(s))
	for _, r := range s {
		out = append(out, float64(r))
	}
	return out, nil
}

func implode(_ *Machine, v any, _ []any) (any, error) {
	a, ok := v.([]any)
	if !ok {
		return nil, Failf("implode input must be an array")
	}
	var b []byte
	for _, e := range a {
		f, ok := value.Number(e)
		if !ok {
			return nil, Failf("Unicode codepoint must be numeric")
		}
		r := rune(0xfffd)
		if f >= 0 && f <= utf8.MaxRune && (f < 0xd800 || f >= 0xe000) {
			r = rune(f)
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b), nil
}

func trimmed(cut func(s, part string) (string, bool)) plain {
	return func(_ *Machine, v any, args []any) (any, error) {
		s, ok1 := v.(string)
		part, ok2 := args[0].(string)
		if !ok1 || !ok2 {
			return v, nil
		}
		s, _ = cut(s, part)
		return s, nil
	}
}

func fixed(name string, test func(s, part string) bool) plain {
	return func(_ *Machine, v any, args []any) (any, error) {
		s, ok1 := v.(string)
		part, ok2 := args[0].(string)
		if !ok1 || !ok2 {
			return nil, Failf("%s() requires string inputs", name)
		}
		return test(s, part), nil
	}
}

func spaceless(trim func(string) string) plain {
	return func(_ *Machine, v any, _ []any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, Failf("%s cannot be trimmed", described(v))
		}
		return trim(s), nil
	}
}

func cased(name string, from, to byte) plain {
	return func(_ *Machine, v any, _ []any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, Failf("%s input must be a string", name)
		}
		b := []byte(s)
		for i, c := range b {
			if c >= from && c <= to {
				b[i] = c ^ 0x20
			}
		}
		return string(b), nil
	}
}

func indices(v, part any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		p, ok := part.(string)
		if !ok {
			break
		}
		out := []any{}
		if p == "" {
			return nil, nil
		}
		at := 0 // in characters, as jq counts since 1.7
		for i := range v {
			if strings.HasPrefix(v[i:], p) {
				out = append(out, float64(at))
			}
			at++
		}
		return out, nil
	case []any:
		if p, ok := part.([]any); ok {
			return indicesOf(v, p), nil
		}
		return indicesOf(v, []any{part}), nil
	}
	return indexValue(v, part)
}

func oneIndex(v, part any, final bool) (any, error) {
	all, err := indices(v, part)
	list, ok := all.([]any)
	if err != nil || !ok || len(list) == 0 {
		return nil, err
	}
	if final {
		return list[len(list)-1], nil
	}
	return list[0], nil
}

// captured makes an object of the named groups of a match.
func captured(_ *Machine, v any, _ []any) (any, error) {
	list, err := indexValue(v, "captures")
	if err != nil {
		return nil, err
	}
	out := value.NewObject(0)
	groups, _ := list.([]any)
	for _, g := range groups {
		name, _ := indexValue(g, "name")
		if s, ok := name.(string); ok {
			text, _ := indexValue(g, "string")
			out.Put(s, text)
		}
	}
	return out, nil
}

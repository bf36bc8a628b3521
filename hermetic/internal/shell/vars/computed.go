package vars

import "strconv"

// OfString is a variable of a text.
func OfString(s string) *Variable { return &Variable{Str: s, IsSet: true} }

// OfInt is a variable of a number.
func OfInt(n int64) *Variable {
	return &Variable{Str: strconv.FormatInt(n, 10), IsSet: true, Integer: true}
}

// OfList is an array of vals, set if there are any.
func OfList(vals []string) *Variable {
	return &Variable{Kind: Indexed, List: ListOf(vals), IsSet: len(vals) > 0}
}

// OfMap is an associative array of vals, set if there are any.
func OfMap(vals map[string]string) *Variable {
	p := NewPairs()
	for k, v := range vals {
		p.Set(k, v)
	}
	return &Variable{Kind: Assoc, Pairs: p, IsSet: len(vals) > 0}
}

package awk

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// keys are those of an array in the order of a for-in: that of
// PROCINFO["sorted_in"], or else numbers first as they count, then the rest.
func (in *interp) keys(a *value.Array) ([]string, error) {
	keys := make([]string, 0, len(a.M))
	for k := range a.M {
		keys = append(keys, k)
	}
	if err := in.c.Budget.Steps(int64(len(keys))); err != nil {
		return nil, err
	}
	how := ""
	if p := in.globals[in.slot("PROCINFO")].Arr; p != nil {
		if c := p.M["sorted_in"]; c != nil {
			how = c.V.Text(in.convfmt)
		}
	}
	if how == "" || how == "@unsorted" {
		return natural(a, keys), nil
	}
	pairs := make([]pair, len(keys))
	for i, k := range keys {
		pairs[i] = pair{k, a.M[k].V, a.M[k].Arr}
	}
	if err := in.sortPairs(pairs, how); err != nil {
		return nil, err
	}
	for i, p := range pairs {
		keys[i] = p.key
	}
	return keys, nil
}

type pair struct {
	key string
	v   value.Value
	arr *value.Array // of an element that is one
}

// compareText orders strings, in any case when IGNORECASE says so.
func (in *interp) compareText(a, b string) int {
	if in.ignoreCase {
		return strings.Compare(strings.ToLower(a), strings.ToLower(b))
	}
	return strings.Compare(a, b)
}

// sortPairs sorts by one of gawk's orders, or by a function of the program.
func (in *interp) sortPairs(pairs []pair, how string) error {
	var less func(a, b pair) int
	byKey := func(a, b pair) int { return in.compareText(a.key, b.key) }
	switch strings.TrimSuffix(strings.TrimSuffix(how, "_asc"), "_desc") {
	case "@ind_str":
		less = byKey
	case "@ind_num":
		less = func(a, b pair) int {
			if c := in.order(value.Num(value.ParseNumber(a.key, false)), value.Num(value.ParseNumber(b.key, false))); c != 0 {
				return c
			}
			return byKey(a, b)
		}
	case "@val_str":
		less = func(a, b pair) int {
			if c := in.compareText(a.v.Text(in.convfmt), b.v.Text(in.convfmt)); c != 0 {
				return c
			}
			return byKey(a, b)
		}
	case "@val_num":
		less = func(a, b pair) int {
			if c := in.order(value.Num(a.v.Number()), value.Num(b.v.Number())); c != 0 {
				return c
			}
			return byKey(a, b)
		}
	case "@val_type":
		less = func(a, b pair) int {
			if (a.arr == nil) != (b.arr == nil) { // arrays are last
				if a.arr == nil {
					return -1
				}
				return 1
			}
			if c := in.order(a.v, b.v); c != 0 {
				return c
			}
			return byKey(a, b)
		}
	default:
		return in.sortByFunction(pairs, how)
	}
	if strings.HasSuffix(how, "_desc") {
		up := less
		less = func(a, b pair) int { return up(b, a) }
	}
	slices.SortStableFunc(pairs, less)
	return nil
}

// order puts numbers before strings.
func (in *interp) order(a, b value.Value) int {
	x, ok := a.Numeric()
	y, ok2 := b.Numeric()
	switch {
	case ok && ok2 && x < y, ok && !ok2:
		return -1
	case ok && ok2 && x > y, !ok && ok2:
		return 1
	case ok:
		return 0
	}
	return in.compareText(a.S, b.S)
}

// sortByFunction sorts by what f(i1, v1, i2, v2) gives.
func (in *interp) sortByFunction(pairs []pair, name string) error {
	f := in.prog.Funcs[name]
	if f == nil {
		return errors.New("sort comparison function `" + name + "' is not defined")
	}
	var failed error
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if failed != nil {
			return 0
		}
		call := &syntax.CallExpr{F: f}
		for _, v := range []value.Value{value.Input(a.key), a.v, value.Input(b.key), b.v} {
			call.Args = append(call.Args, &syntax.StrExpr{V: v})
		}
		call.Args = call.Args[:min(len(call.Args), f.Count)]
		v, err := in.call(call)
		failed = err
		switch n := v.Number(); {
		case n < 0:
			return -1
		case n > 0:
			return 1
		}
		return 0
	})
	return failed
}

// natural is gawk's order when none was asked for: strings as they lie in its
// hash table, then integers below 1, then the others as they count.
func natural(a *value.Array, keys []string) []string {
	var strs, low, high []string
	for _, k := range keys {
		switch n, ok := integerKey(k); {
		case !ok:
			strs = append(strs, k)
		case n < 1:
			low = append(low, k)
		default:
			high = append(high, k)
		}
	}
	slices.SortFunc(strs, func(x, y string) int { return a.M[x].Seq - a.M[y].Seq })
	count := func(x, y string) int {
		m, _ := integerKey(x)
		n, _ := integerKey(y)
		return m - n
	}
	slices.SortFunc(low, count)
	slices.SortFunc(high, count)
	return append(append(hashed(strs), low...), high...)
}

// hashed puts keys, which are in the order of their making, as gawk's table
// of strings has them: new ones first in their bucket, three to a bucket.
func hashed(keys []string) []string {
	sizes := []int{13, 127, 1021, 8191, 131071, 1048573, 8388593}
	table := make([][]string, sizes[0])
	hash := func(s string) int {
		var h uint32
		for i := range len(s) {
			h = uint32(int32(int8(s[i]))) + 65599*h
		}
		return int(h)
	}
	grown := 0
	for n, k := range keys {
		if n/len(table) > 2 && grown+1 < len(sizes) {
			grown++
			bigger := make([][]string, sizes[grown])
			for _, bucket := range table {
				for i := len(bucket) - 1; i >= 0; i-- {
					at := hash(bucket[i]) % len(bigger)
					bigger[at] = append(bigger[at], bucket[i])
				}
			}
			table = bigger
		}
		at := hash(k) % len(table)
		table[at] = append(table[at], k)
	}
	out := keys[:0:0]
	for _, bucket := range table {
		for i := len(bucket) - 1; i >= 0; i-- {
			out = append(out, bucket[i])
		}
	}
	return out
}

func integerKey(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && strconv.Itoa(n) == s
}

// asort is asort and asorti.
func (in *interp) asort(e *syntax.BuiltinExpr) (value.Value, error) {
	src, err := in.arrayArg(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	dst := src
	if len(e.Args) > 1 {
		if dst, err = in.arrayArg(e.Args[1]); err != nil {
			return value.Value{}, err
		}
	}
	how := "@val_type_asc"
	if e.Name == "asorti" {
		how = "@ind_str_asc"
	}
	if len(e.Args) > 2 {
		v, err := in.eval(e.Args[2])
		if err != nil {
			return value.Value{}, err
		}
		how = v.Text(in.convfmt)
	}
	pairs := make([]pair, 0, len(src.M))
	for k, c := range src.M {
		pairs = append(pairs, pair{k, c.V, c.Arr})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	if err := in.sortPairs(pairs, how); err != nil {
		return value.Value{}, err
	}
	if err := in.refill(dst, nil, 1); err != nil {
		return value.Value{}, err
	}
	for i, p := range pairs {
		c, err := in.at(dst, itoa(i+1))
		if err != nil {
			return value.Value{}, err
		}
		if c.V, c.Arr = p.v, p.arr; e.Name == "asorti" {
			c.V, c.Arr = value.Str(p.key), nil
		}
	}
	return value.Num(float64(len(pairs))), nil
}

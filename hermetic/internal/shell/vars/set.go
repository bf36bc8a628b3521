package vars

import (
	"strconv"
	"strings"
)

// Set assigns to $name without a subscript; the attributes of the variable
// apply.
func (t *Table) Set(name, val string) bool {
	name = t.Resolve(name)
	if base, index, ok := SplitSubscript(name); ok {
		return t.SetElement(base, index, val, false)
	}
	if t.SetComputed(name, val) {
		return true
	}
	return t.Assign(t.Target(name), name, val, false)
}

// Assign gives v a plain value, or appends it if add is true. It reports false
// for a readonly variable.
func (t *Table) Assign(v *Variable, name, val string, add bool) bool {
	if v.Readonly {
		t.shell.Errorf("%s: readonly variable", name)
		return false
	}
	old, _ := v.Scalar()
	val = t.Shape(v, old, val, add)
	t.shell.Grow(int64(len(val)-len(old)), len(val))
	switch v.Kind {
	case Indexed:
		v.Own()
		v.List.Set(0, val)
	case Assoc:
		v.Own()
		v.Pairs.Set("0", val)
	default:
		v.Str = val
	}
	v.IsSet = true
	if t.shell.AllExport() {
		v.Exported = true
	}
	t.shell.Changed(name)
	return true
}

// Shape is val as the attributes of v make it; with add, appended to old.
func (t *Table) Shape(v *Variable, old, val string, add bool) string {
	if v.Integer {
		n := t.shell.Arith(val)
		if add {
			n += t.shell.Arith(old)
		}
		return strconv.FormatInt(n, 10)
	}
	if add {
		t.shell.CheckLen(len(old) + len(val))
		val = old + val
	}
	switch {
	case v.Lower:
		val = strings.ToLower(val)
	case v.Upper:
		val = strings.ToUpper(val)
	case v.Capital && val != "":
		val = strings.ToUpper(val[:1]) + strings.ToLower(val[1:])
	}
	return val
}

// SetElement assigns name[index]=val. The index is expanded and not yet
// evaluated.
func (t *Table) SetElement(name, index, val string, add bool) bool {
	name = t.Resolve(name)
	if base, _, ok := SplitSubscript(name); ok {
		name = base
	}
	return t.SetElementOf(t.Target(name), name, index, val, add)
}

// SetElementOf is SetElement on a variable that was found already.
func (t *Table) SetElementOf(v *Variable, name, index, val string, add bool) bool {
	if v.Readonly {
		t.shell.Errorf("%s: readonly variable", name)
		return false
	}
	if v.Kind == Assoc {
		v.Own()
		old := v.Pairs.Vals[index]
		val = t.Shape(v, old, val, add)
		t.shell.Grow(int64(len(val)-len(old)), len(val))
		t.shell.CheckArray(len(v.Pairs.Vals) + 1)
		v.Pairs.Set(index, val)
		v.IsSet = true
		return true
	}
	at, ok := t.Index(v, name, index)
	if !ok {
		return false
	}
	v.ToIndexed()
	v.Own()
	old, _ := v.List.Get(at)
	val = t.Shape(v, old, val, add)
	t.shell.Grow(int64(len(val)-len(old)), len(val))
	t.shell.CheckArray(len(v.List.Elems) + 1)
	v.List.Set(at, val)
	v.IsSet = true
	return true
}

// SetList makes name an array of vals.
func (t *Table) SetList(name string, vals []string) bool {
	name = t.Resolve(name)
	v := t.Target(name)
	if v.Readonly {
		t.shell.Errorf("%s: readonly variable", name)
		return false
	}
	t.shell.CheckArray(len(vals))
	v.Kind, v.List, v.Pairs, v.Str, v.IsSet, v.Shared = Indexed, ListOf(vals), nil, "", true, false
	t.shell.Grow(v.Size(), 0)
	return true
}

// ToIndexed makes a plain variable an array of one.
func (v *Variable) ToIndexed() {
	if v.Kind != Plain {
		return
	}
	v.Kind, v.List = Indexed, &List{}
	if v.IsSet {
		v.List.Set(0, v.Str)
	}
	v.Str = ""
}

// ToAssoc makes a plain variable an associative array of one.
func (v *Variable) ToAssoc() {
	if v.Kind != Plain {
		return
	}
	v.Kind, v.Pairs = Assoc, NewPairs()
	if v.IsSet {
		v.Pairs.Set("0", v.Str)
	}
	v.Str = ""
}

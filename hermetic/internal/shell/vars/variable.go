package vars

import (
	"slices"
)

// Kind says whether a variable is an array.
type Kind byte

const (
	Plain Kind = iota
	Indexed
	Assoc
)

// Variable is one name's value and attributes.
type Variable struct {
	Kind  Kind
	IsSet bool // it has a value
	Str   string
	List  *List
	Pairs *Pairs

	Exported, Readonly, Integer, Lower, Upper, Capital, Ref, Trace bool
	Shared                                                         bool // List or Pairs is shared with another shell
}

// Flags is the attributes as declare -p prints them.
func (v *Variable) Flags() string {
	b := []byte{}
	for _, f := range []struct {
		on bool
		c  byte
	}{
		{v.Kind == Indexed, 'a'},
		{v.Kind == Assoc, 'A'},
		{v.Integer, 'i'},
		{v.Ref, 'n'},
		{v.Readonly, 'r'},
		{v.Trace, 't'},
		{v.Exported, 'x'},
		{v.Capital, 'c'},
		{v.Lower, 'l'},
		{v.Upper, 'u'},
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

// Own copies elements that are shared with another shell, before they are
// changed.
func (v *Variable) Own() {
	if !v.Shared {
		return
	}
	if v.List != nil {
		v.List = &List{slices.Clone(v.List.Elems)}
	}
	if v.Pairs != nil {
		v.Pairs = v.Pairs.clone()
	}
	v.Shared = false
}

// Scalar is the value that $name without a subscript has.
func (v *Variable) Scalar() (string, bool) {
	switch v.Kind {
	case Indexed:
		return v.List.Get(0)
	case Assoc:
		s, ok := v.Pairs.Vals["0"]
		return s, ok
	}
	return v.Str, v.IsSet
}

// Values lists the elements; a plain variable that is set has one.
func (v *Variable) Values() []string {
	switch v.Kind {
	case Indexed:
		return v.List.values()
	case Assoc:
		return v.Pairs.values()
	}
	if v.IsSet {
		return []string{v.Str}
	}
	return nil
}

// Keys lists the subscripts of the elements.
func (v *Variable) Keys() []string {
	switch v.Kind {
	case Indexed:
		return v.List.keys()
	case Assoc:
		return v.Pairs.Keys()
	}
	if v.IsSet {
		return []string{"0"}
	}
	return nil
}

// Size is roughly how many bytes the variable holds.
func (v *Variable) Size() int64 {
	n := int64(len(v.Str))
	if v.List != nil {
		for _, e := range v.List.Elems {
			n += int64(len(e.Val)) + 24
		}
	}
	if v.Pairs != nil {
		for k, s := range v.Pairs.Vals {
			n += int64(len(k)+len(s)) + 64
		}
	}
	return n
}

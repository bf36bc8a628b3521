package assign

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// keyedWord splits "[key]+=value", which the parser reads as an ordinary word.
func keyedWord(sh *state.Shell, w *syntax.Word) (val *syntax.Word, key string, appends, ok bool) {
	parts := w.Parts
	if lit, isLit := expand.FirstLit(w); isLit && lit == scan.Appended {
		parts = parts[1:]
	}
	for i, p := range parts {
		lit, isLit := p.(*syntax.Lit)
		if !isLit || i == 0 && !strings.HasPrefix(lit.Value, "[") {
			if i == 0 {
				break
			}
			continue
		}
		before, rest, found := strings.Cut(lit.Value, "]+=")
		if !found {
			continue
		}
		in := append(append([]syntax.WordPart{}, parts[:i]...), &syntax.Lit{Value: before})
		first := *in[0].(*syntax.Lit)
		first.Value = first.Value[1:]
		in[0] = &first
		val = &syntax.Word{Parts: append([]syntax.WordPart{&syntax.Lit{Value: rest}}, parts[i+1:]...)}
		return val, expand.String(sh, &syntax.Word{Parts: in}), true, true
	}
	return nil, "", false, false
}

// element is one element between the parentheses of name=(...).
type element struct {
	key     string
	val     string
	hasKey  bool
	appends bool // [key]+=val
}

// array is name=(...) and name+=(...).
func array(sh *state.Shell, v *vars.Variable, name string, a *syntax.Assign) bool {
	if v.Readonly {
		sh.Errorf("%s: readonly variable", name)
		return false
	}
	isAssoc := v.Kind == vars.Assoc
	elems := elements(sh, name, a, isAssoc)
	if sh.Options.On(options.XTrace) {
		expand.Trace(sh, name+equals(a)+sh.Source(a.Array))
	}
	if !a.Append {
		sh.Grow(-v.Size(), 0)
		v.Str, v.List, v.Pairs, v.Shared = "", nil, nil, false
		if isAssoc {
			v.Pairs = vars.NewPairs()
		} else {
			v.Kind, v.List = vars.Indexed, &vars.List{}
		}
	}
	v.ToIndexed()
	v.IsSet = true
	if isAssoc {
		return setPairs(sh, v, name, elems)
	}
	if !setIndexed(sh, v, name, elems) {
		return false
	}
	if sh.AllExport() {
		v.Exported = true
	}
	return true
}

// elements expands what is between the parentheses.
func elements(sh *state.Shell, name string, a *syntax.Assign, isAssoc bool) []element {
	var out []element
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			key := ""
			if isAssoc {
				key = expand.KeyText(sh, e.Index)
			} else {
				key = expand.Subscript(sh, name, e.Index)
			}
			out = append(out, element{key: key, val: expand.Value(sh, e.Value), hasKey: true})
		} else if w, key, appends, ok := keyedWord(sh, e.Value); ok {
			out = append(out, element{key: key, val: expand.Value(sh, w), hasKey: true, appends: appends})
			continue
		} else {
			for _, f := range expand.Fields(sh, []*syntax.Word{e.Value}) {
				out = append(out, element{val: f})
			}
		}
		sh.CheckArray(len(out))
	}
	return out
}

// setPairs assigns elements of an associative array. Those without a key are
// keys and values in turn.
func setPairs(sh *state.Shell, v *vars.Variable, name string, elems []element) bool {
	for i := 0; i < len(elems); i++ {
		e := elems[i]
		if !e.hasKey {
			e.key, e.val = e.val, ""
			if i+1 < len(elems) {
				i++
				e.val = elems[i].val
			}
		}
		if !sh.Vars.SetElementOf(v, name, e.key, e.val, e.appends) {
			return false
		}
	}
	return true
}

// setIndexed assigns elements of an array. One without a subscript comes after
// the one before it.
func setIndexed(sh *state.Shell, v *vars.Variable, name string, elems []element) bool {
	next := v.List.Next()
	for _, e := range elems {
		if e.hasKey {
			at, ok := sh.Vars.Index(v, name, e.key)
			if !ok {
				return false
			}
			next = at
		}
		if !sh.Vars.SetElementOf(v, name, strconv.FormatInt(next, 10), e.val, e.appends) {
			return false
		}
		next++
	}
	return true
}

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

// keyedWord takes "[key]+=value" apart, which the parser knows as a word alone.
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

// array is name=(...) and name+=(...).
func array(sh *state.Shell, v *vars.Variable, name string, a *syntax.Assign) bool {
	if v.Readonly {
		sh.Errorf("%s: readonly variable", name)
		return false
	}
	type pair struct {
		key     string
		val     string
		hasKey  bool
		appends bool
	}
	var pairs []pair
	isAssoc := v.Kind == vars.Assoc
	for _, e := range a.Array.Elems {
		switch {
		case e.Index != nil:
			key := ""
			if isAssoc {
				key = expand.KeyText(sh, e.Index)
			} else {
				key = expand.Subscript(sh, name, e.Index)
			}
			pairs = append(pairs, pair{key: key, val: expand.Value(sh, e.Value), hasKey: true})
		default:
			if w, key, appends, ok := keyedWord(sh, e.Value); ok {
				pairs = append(pairs, pair{key: key, val: expand.Value(sh, w), hasKey: true, appends: appends})
				continue
			}
			for _, f := range expand.Fields(sh, []*syntax.Word{e.Value}) {
				pairs = append(pairs, pair{val: f})
			}
		}
		sh.CheckArray(len(pairs))
	}
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
	if !isAssoc {
		v.ToIndexed()
	}
	v.IsSet = true
	if isAssoc {
		for i := 0; i < len(pairs); i++ {
			p := pairs[i]
			if !p.hasKey { // A=(k v k v)
				key := p.val
				p.key, p.val = key, ""
				if i+1 < len(pairs) {
					i++
					p.val = pairs[i].val
				}
			}
			if !sh.Vars.SetElementOf(v, name, p.key, p.val, p.appends) {
				return false
			}
		}
		return true
	}
	v.ToIndexed()
	next := v.List.Next()
	for _, p := range pairs {
		if p.hasKey {
			at, ok := sh.Vars.Index(v, name, p.key)
			if !ok {
				return false
			}
			next = at
		}
		if !sh.Vars.SetElementOf(v, name, strconv.FormatInt(next, 10), p.val, p.appends) {
			return false
		}
		next++
	}
	if sh.Options.On(options.AllExport) {
		v.Exported = true
	}
	return true
}

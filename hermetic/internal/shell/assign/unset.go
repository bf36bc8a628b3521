package assign

import (
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// Unset is the builtin unset.
func Unset(sh *state.Shell, args []string) int {
	given, args, ok := sh.Letters(args, "fvn", "[-f] [-v] [-n] [name ...]")
	if !ok {
		return 2
	}
	funcs, only, refs := given['f'], given['v'], given['n']
	status := 0
	for _, name := range args {
		if funcs {
			if f := sh.Commands.Funcs[name]; f != nil && f.Readonly {
				sh.Errorf("unset: %s: cannot unset: readonly function", name)
				status = 1
				continue
			}
			delete(sh.Commands.Funcs, name)
			continue
		}
		if base, index, ok := vars.SplitSubscript(name); ok {
			if !unsetElement(sh, base, index) {
				status = 1
			}
			continue
		}
		if !vars.ValidName(name) {
			if !only {
				delete(sh.Commands.Funcs, name)
				continue
			}
			sh.Errorf("unset: `%s': not a valid identifier", name)
			status = 1
			continue
		}
		if !refs {
			if to := sh.Vars.Resolve(name); to != name {
				if base, index, ok := vars.SplitSubscript(to); ok {
					unsetElement(sh, base, index)
					continue
				}
				name = to
			}
		}
		if !only && sh.Vars.LookupRef(name) == nil {
			delete(sh.Commands.Funcs, name)
			continue
		}
		if !sh.Vars.Unset(name) {
			status = 1
		}
	}
	return status
}

// unsetElement is unset name[index].
func unsetElement(sh *state.Shell, name, index string) bool {
	name = sh.Vars.Resolve(name)
	v := sh.Vars.Raw(name)
	if v == nil {
		return true
	}
	if v.Readonly {
		sh.Errorf("unset: %s: cannot unset: readonly variable", name)
		return false
	}
	v.Own()
	switch {
	case v.Kind == vars.Assoc:
		v.Pairs.Remove(expand.Text(sh, index))
	case index == "":
	case index == "@" || index == "*":
		if v.Kind == vars.Indexed {
			v.List.Elems = nil
		}
	case v.Kind == vars.Indexed:
		at := expand.Arith(sh, index)
		if at < 0 {
			at += v.List.Next()
		}
		if at < 0 {
			sh.Errorf("unset: [%s]: bad array subscript", index)
			return false
		}
		v.List.Remove(at)
	default:
		if expand.Arith(sh, index) == 0 {
			return sh.Vars.Unset(name)
		}
		sh.Errorf("unset: %s: not an array variable", name)
		return false
	}
	return true
}

package builtin

import (
	"fmt"
	"slices"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
)

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// runShopt is the builtin shopt.
func runShopt(sh *state.Shell, args []string) int {
	given, names, ok := sh.Letters(args, "suqpo", "[-pqsu] [-o] [optname ...]")
	if !ok {
		return 2
	}
	set, unset, quiet, print, setO := given['s'], given['u'], given['q'], given['p'], given['o']
	if set && unset {
		sh.Errorf("shopt: cannot set and unset shell options simultaneously")
		return 1
	}
	get := func(n string) (bool, bool) { return sh.Options.Shopt[n], slices.Contains(options.Shopts(), n) }
	all, kind := options.Shopts(), "shell "
	if setO {
		kind, all = "", nil
		for _, o := range options.All() {
			all = append(all, o.Name)
		}
		get = func(n string) (bool, bool) { return slices.Contains(sh.Options.Names(), n), slices.Contains(all, n) }
	}
	show := func(n string, on bool) {
		switch {
		case quiet:
		case print && setO:
			sh.Outf("set %so %s\n", map[bool]string{true: "-", false: "+"}[on], n)
		case print:
			sh.Outf("shopt %s %s\n", map[bool]string{true: "-s", false: "-u"}[on], n)
		default:
			sh.Out(fmt.Sprintf("%-15s\t%s\n", n, onOff(on)))
		}
	}
	if len(names) == 0 {
		for _, n := range all {
			if on, _ := get(n); !set && !unset || on == set {
				show(n, on)
			}
		}
		return 0
	}
	status := 0
	for _, n := range names {
		on, ok := get(n)
		switch {
		case !ok:
			sh.Errorf("shopt: %s: invalid %soption name", n, kind)
			status = 1
		case !set && !unset:
			show(n, on)
			if !on {
				status = 1
			}
		case setO:
			sh.Options.SetName(n, set)
		default:
			sh.Options.Shopt[n] = set
		}
	}
	return status
}

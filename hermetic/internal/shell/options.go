package shell

import (
	"fmt"
	"slices"
	"strings"
)

// options are those of set.
type options uint64

const (
	optAllExport options = 1 << iota
	optNoBrace           // the opposite of braceexpand
	optErrExit
	optErrTrace
	optFuncTrace
	optHashAll
	optHistExpand
	optHistory
	optIgnoreEOF
	optInteractiveComments
	optKeyword
	optMonitor
	optNoClobber
	optNoExec
	optNoGlob
	optNoLog
	optNotify
	optNoUnset
	optOneCmd
	optPhysical
	optPipeFail
	optPosix
	optPrivileged
	optVerbose
	optXTrace
	optCommand // -c
	optStdin   // -s
	optEmacs
	optVi
)

func (sh *shell) on(o options) bool { return sh.opts&o != 0 }

type option struct {
	name   string
	letter byte
	bit    options
}

// setOptionNames are the names of set -o, sorted.
func setOptionNames() []option {
	return []option{
		{"allexport", 'a', optAllExport},
		{"braceexpand", 'B', optNoBrace},
		{"emacs", 0, optEmacs},
		{"errexit", 'e', optErrExit},
		{"errtrace", 'E', optErrTrace},
		{"functrace", 'T', optFuncTrace},
		{"hashall", 'h', optHashAll},
		{"histexpand", 'H', optHistExpand},
		{"history", 0, optHistory},
		{"ignoreeof", 0, optIgnoreEOF},
		{"interactive-comments", 0, optInteractiveComments},
		{"keyword", 'k', optKeyword},
		{"monitor", 'm', optMonitor},
		{"noclobber", 'C', optNoClobber},
		{"noexec", 'n', optNoExec},
		{"noglob", 'f', optNoGlob},
		{"nolog", 0, optNoLog},
		{"notify", 'b', optNotify},
		{"nounset", 'u', optNoUnset},
		{"onecmd", 't', optOneCmd},
		{"physical", 'P', optPhysical},
		{"pipefail", 0, optPipeFail},
		{"posix", 0, optPosix},
		{"privileged", 'p', optPrivileged},
		{"verbose", 'v', optVerbose},
		{"vi", 0, optVi},
		{"xtrace", 'x', optXTrace},
	}
}

func (o option) isOn(sh *shell) bool { return sh.on(o.bit) != (o.bit == optNoBrace) }

func (o option) set(sh *shell, on bool) {
	if o.bit == optNoBrace {
		on = !on
	}
	if on {
		sh.opts |= o.bit
	} else {
		sh.opts &^= o.bit
	}
}

// optLetters is $-.
func (sh *shell) optLetters() string {
	var b []byte
	for _, o := range setOptionNames() {
		if o.letter != 0 && o.isOn(sh) {
			b = append(b, o.letter)
		}
	}
	slices.SortFunc(b, func(x, y byte) int {
		const order = "abefhkmnptuvxBCEHPT"
		return strings.IndexByte(order, x) - strings.IndexByte(order, y)
	})
	if sh.on(optCommand) {
		b = append(b, 'c')
	}
	if sh.on(optStdin) {
		b = append(b, 's')
	}
	return string(b)
}

func (sh *shell) optsOn() []string {
	var out []string
	for _, o := range setOptionNames() {
		if o.isOn(sh) {
			out = append(out, o.name)
		}
	}
	return out
}

// setOption sets one of set -o by name.
func (sh *shell) setOption(name string, on bool) bool {
	for _, o := range setOptionNames() {
		if o.name == name {
			o.set(sh, on)
			return true
		}
	}
	return false
}

// setOptions applies what set is given, the names of -o in the next word.
func (sh *shell) setOptions(args []string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 {
			continue
		}
		on := a[0] == '-'
		for _, letter := range []byte(a[1:]) {
			if letter == 'o' {
				if i+1 >= len(args) {
					continue
				}
				i++
				if !sh.setOption(args[i], on) {
					sh.errorf("set: %s: invalid option name", args[i])
					return false
				}
				continue
			}
			if !sh.setLetter(letter, on) {
				sh.errorf("set: %c%c: invalid option", a[0], letter)
				sh.errText("set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]\n")
				return false
			}
		}
	}
	return true
}

func (sh *shell) setLetter(letter byte, on bool) bool {
	for _, o := range setOptionNames() {
		if o.letter == letter {
			o.set(sh, on)
			return true
		}
	}
	return false
}

func builtinSet(sh *shell, args []string) int {
	if len(args) == 1 {
		sh.printVars()
		return 0
	}
	i := 1
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			sh.setParams(args[i+1:])
			return 0
		}
		if a == "-" {
			sh.opts &^= optXTrace | optVerbose
			if i+1 < len(args) {
				sh.setParams(args[i+1:])
			}
			return 0
		}
		if a == "+" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if strings.HasSuffix(a, "o") && i+1 == len(args) {
			if !sh.setOptions([]string{strings.TrimSuffix(a, "o")}) {
				return 2
			}
			sh.printOptions(a[0] == '+')
			return 0
		}
		used := 1
		if strings.Contains(a[1:], "o") {
			used = 2
		}
		if !sh.setOptions(args[i : i+used]) {
			return 2
		}
		i += used - 1
	}
	if i < len(args) {
		sh.setParams(args[i:])
	}
	return 0
}

// setParams is set's way of giving positional parameters, which outlives a
// sourced file.
func (sh *shell) setParams(args []string) {
	sh.params, sh.paramsSet = slices.Clone(args), true
}

func (sh *shell) printOptions(commands bool) {
	for _, o := range setOptionNames() {
		switch {
		case commands && o.isOn(sh):
			sh.outf("set -o %s\n", o.name)
		case commands:
			sh.outf("set +o %s\n", o.name)
		default:
			sh.outf("%-15s\t%s\n", o.name, onOff(o.isOn(sh)))
		}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// defaultShopts are the options of shopt that a script has on.
func defaultShopts() map[string]bool {
	return map[string]bool{
		"checkwinsize": true, "cmdhist": true, "complete_fullquote": true, "extquote": true, "force_fignore": true,
		"globasciiranges": true, "globskipdots": true, "hostcomplete": true, "interactive_comments": true,
		"patsub_replacement": true, "progcomp": true, "promptvars": true, "sourcepath": true,
	}
}

func shoptNames() []string {
	return []string{
		"autocd", "assoc_expand_once", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist", "compat31",
		"compat32", "compat40", "compat41", "compat42", "compat43", "compat44", "complete_fullquote", "direxpand", "dirspell",
		"dotglob", "execfail", "expand_aliases", "extdebug", "extglob", "extquote", "failglob", "force_fignore",
		"globasciiranges", "globskipdots", "globstar", "gnu_errfmt", "histappend", "histreedit", "histverify", "hostcomplete",
		"huponexit", "inherit_errexit", "interactive_comments", "lastpipe", "lithist", "localvar_inherit", "localvar_unset",
		"login_shell", "mailwarn", "no_empty_cmd_completion", "nocaseglob", "nocasematch", "noexpand_translation", "nullglob",
		"patsub_replacement", "progcomp", "progcomp_alias", "promptvars", "restricted_shell", "shift_verbose", "sourcepath",
		"varredir_close", "xpg_echo",
	}
}

func (sh *shell) shoptsOn() []string {
	var out []string
	for _, n := range shoptNames() {
		if sh.shopts[n] {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func builtinShopt(sh *shell, args []string) int {
	given, names, ok := sh.letters(args, "suqpo", "[-pqsu] [-o] [optname ...]")
	if !ok {
		return 2
	}
	set, unset, quiet, print, setO := given['s'], given['u'], given['q'], given['p'], given['o']
	if set && unset {
		sh.errorf("shopt: cannot set and unset shell options simultaneously")
		return 1
	}
	get := func(n string) (bool, bool) { return sh.shopts[n], slices.Contains(shoptNames(), n) }
	all, kind := shoptNames(), "shell "
	if setO {
		kind, all = "", nil
		for _, o := range setOptionNames() {
			all = append(all, o.name)
		}
		get = func(n string) (bool, bool) { return slices.Contains(sh.optsOn(), n), slices.Contains(all, n) }
	}
	show := func(n string, on bool) {
		switch {
		case quiet:
		case print && setO:
			sh.outf("set %so %s\n", map[bool]string{true: "-", false: "+"}[on], n)
		case print:
			sh.outf("shopt %s %s\n", map[bool]string{true: "-s", false: "-u"}[on], n)
		default:
			sh.out(fmt.Sprintf("%-15s\t%s\n", n, onOff(on)))
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
			sh.errorf("shopt: %s: invalid %soption name", n, kind)
			status = 1
		case !set && !unset:
			show(n, on)
			if !on {
				status = 1
			}
		case setO:
			sh.setOption(n, set)
		default:
			sh.shopts[n] = set
		}
	}
	return status
}

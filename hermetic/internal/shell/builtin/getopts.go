package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

func runGetopts(sh *state.Shell, args []string) int {
	if len(args) < 3 {
		sh.ErrText("getopts: usage: getopts optstring name [arg ...]\n")
		return 2
	}
	spec, name, words := args[1], args[2], sh.Params.List
	if len(args) > 3 {
		words = args[3:]
	}
	silent := strings.HasPrefix(spec, ":")
	spec = strings.TrimPrefix(spec, ":")
	ind := int(number.Leading(sh.Vars.Get("OPTIND")))
	if ind < 1 {
		ind = 1
	}
	at := sh.Params.OptChar
	finish := func(val string, arg *string, status int) int {
		sh.Vars.Set("OPTIND", strconv.Itoa(ind))
		sh.Params.OptChar = at
		if arg != nil {
			sh.Vars.Set("OPTARG", *arg)
		} else {
			sh.Vars.Unset("OPTARG")
		}
		if !vars.ValidName(name) {
			sh.Errorf("getopts: `%s': not a valid identifier", name)
			return 1
		}
		if !sh.Vars.Set(name, val) {
			return 1
		}
		return status
	}
	if at == 0 {
		if ind > len(words) || len(words[ind-1]) < 2 || words[ind-1][0] != '-' {
			return finish("?", nil, 1)
		}
		if words[ind-1] == "--" {
			ind++
			return finish("?", nil, 1)
		}
		at = 1
	}
	if ind > len(words) || at >= len(words[ind-1]) {
		at = 0
		return finish("?", nil, 1)
	}
	word := words[ind-1]
	c := word[at : at+1]
	at++
	i := strings.Index(spec, c)
	if i < 0 || c == ":" {
		if at >= len(word) {
			ind, at = ind+1, 0
		}
		if silent {
			return finish("?", &c, 0)
		}
		if sh.Vars.Get("OPTERR") != "0" {
			sh.ErrText(sh.Program.Arg0 + ": illegal option -- " + c + "\n")
		}
		return finish("?", nil, 0)
	}
	if i+1 >= len(spec) || spec[i+1] != ':' {
		if at >= len(word) {
			ind, at = ind+1, 0
		}
		return finish(c, nil, 0)
	}
	if at < len(word) {
		arg := word[at:]
		ind, at = ind+1, 0
		return finish(c, &arg, 0)
	}
	ind, at = ind+1, 0
	if ind > len(words) {
		if silent {
			return finish(":", &c, 0)
		}
		if sh.Vars.Get("OPTERR") != "0" {
			sh.ErrText(sh.Program.Arg0 + ": option requires an argument -- " + c + "\n")
		}
		return finish("?", nil, 0)
	}
	arg := words[ind-1]
	ind++
	return finish(c, &arg, 0)
}

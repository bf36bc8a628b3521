package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// runGetopts is the builtin getopts: one option per call.
func runGetopts(sh *state.Shell, args []string) int {
	if len(args) < 3 {
		sh.ErrText("getopts: usage: getopts optstring name [arg ...]\n")
		return 2
	}
	g := &getopts{sh: sh, words: sh.Params.List, at: sh.Params.OptChar}
	if len(args) > 3 {
		g.words = args[3:]
	}
	g.spec, g.silent = strings.CutPrefix(args[1], ":")
	g.index = max(int(number.Leading(sh.Vars.Get("OPTIND"))), 1)
	val, arg, status := g.next()

	sh.Vars.Set("OPTIND", strconv.Itoa(g.index))
	sh.Params.OptChar = g.at
	if arg != nil {
		sh.Vars.Set("OPTARG", *arg)
	} else {
		sh.Vars.Unset("OPTARG")
	}
	name := args[2]
	if !vars.ValidName(name) {
		sh.Errorf("getopts: `%s': not a valid identifier", name)
		return 1
	}
	if !sh.Vars.Set(name, val) {
		return 1
	}
	return status
}

// getopts reads one option of words.
type getopts struct {
	sh     *state.Shell
	spec   string // the letters, a colon after those with an argument
	silent bool   // mistakes are reported only in the variables
	words  []string
	index  int // $OPTIND: the word, counted from 1
	at     int // index in the word; 0: at its beginning
}

// next reads an option: its letter, its argument (nil if it has none), and the
// exit status.
func (g *getopts) next() (val string, arg *string, status int) {
	letter, ok := g.letter()
	if !ok {
		return "?", nil, 1
	}
	rest := g.words[g.index-1][g.at:]
	i := strings.Index(g.spec, letter)
	known := i >= 0 && letter != ":"
	if !known || i+1 >= len(g.spec) || g.spec[i+1] != ':' {
		if rest == "" {
			g.index, g.at = g.index+1, 0
		}
		if !known {
			return g.mistake("?", letter, "illegal option")
		}
		return letter, nil, 0
	}
	g.index, g.at = g.index+1, 0
	if rest != "" {
		return letter, &rest, 0
	}
	if g.index > len(g.words) {
		return g.mistake(":", letter, "option requires an argument")
	}
	g.index++
	return letter, &g.words[g.index-2], 0
}

// letter reads the next letter; false if there are no more options.
func (g *getopts) letter() (string, bool) {
	if g.at == 0 {
		if g.index > len(g.words) || len(g.words[g.index-1]) < 2 || g.words[g.index-1][0] != '-' {
			return "", false
		}
		if g.words[g.index-1] == "--" {
			g.index++
			return "", false
		}
		g.at = 1
	}
	if g.index > len(g.words) || g.at >= len(g.words[g.index-1]) {
		g.at = 0
		return "", false
	}
	g.at++
	return g.words[g.index-1][g.at-1 : g.at], true
}

// mistake is the result for a wrong letter; val is its value in silent mode.
func (g *getopts) mistake(val, letter, what string) (string, *string, int) {
	if g.silent {
		return val, &letter, 0
	}
	if g.sh.Vars.Get("OPTERR") != "0" {
		g.sh.ErrText(g.sh.Program.Arg0 + ": " + what + " -- " + letter + "\n")
	}
	return "?", nil, 0
}

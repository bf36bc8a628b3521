package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/assign"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
)

// execBuiltin is exec. With words it ends this shell; without, it makes its
// redirections permanent.
func execBuiltin(sh *state.Shell, st *syntax.Stmt, c *syntax.CallExpr, args []string) {
	expand.TraceArgs(sh, c, args)
	if len(args) == 1 {
		sh.Status = 0
		if !redirect.Keep(sh, st.Redirs) {
			sh.Status = 1
			if !sh.Options.Shopt["execfail"] {
				sh.Flow = state.Exits
			}
		}
		for _, a := range c.Assigns {
			assign.Apply(sh, a)
		}
		return
	}
	undo, ok := redirect.Apply(sh, st.Redirs)
	defer undo()
	if !ok {
		sh.Status, sh.Flow = 1, state.Exits
		return
	}
	pop, ok := assign.Temporary(sh, c.Assigns)
	defer pop()
	if !ok {
		sh.Status = 1
		return
	}
	sh.Status = execArgs(sh, args)
}

// execArgs is exec with words, or the builtin exec through another builtin.
func execArgs(sh *state.Shell, args []string) int {
	args = args[1:]
	env, arg0 := sh.Environ(), ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch {
		case a == "-a" && len(args) > 0:
			arg0, args = args[0], args[1:]
		case strings.Trim(a[1:], "cl") == "":
			if strings.Contains(a, "c") {
				env = nil
			}
		default:
			sh.Errorf("exec: %s: invalid option", a)
			sh.ErrText("exec: usage: exec [-cl] [-a name] [command [argument ...]] [redirection ...]\n")
			return 2
		}
	}
	if len(args) == 0 {
		return 0
	}
	path := args[0]
	if strings.IndexByte(path, '/') < 0 {
		p, ok := sh.FindCommand(path)
		if !ok {
			sh.Errorf("exec: %s: not found", path)
			if !sh.Options.Shopt["execfail"] {
				sh.Flow = state.Exits
			}
			return 127
		}
		path = p
	}
	if arg0 != "" {
		args = append([]string{arg0}, args[1:]...)
	}
	delete(sh.Traps.Actions, "EXIT")
	status := runPath(sh, path, args, append(env, "_="+path))
	sh.Flow = state.Exits
	return status
}

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// execBuiltin is exec: with words it is the end of this shell, without it makes
// redirections last.
func (sh *shell) execBuiltin(st *syntax.Stmt, c *syntax.CallExpr, args []string) {
	sh.traceArgs(c, args)
	if len(args) == 1 {
		sh.status = 0
		if !sh.redirectForGood(st.Redirs) {
			sh.status = 1
			if !sh.shopts["execfail"] {
				sh.flow = exits
			}
		}
		for _, a := range c.Assigns {
			sh.assign(a)
		}
		return
	}
	undo, ok := sh.redirect(st.Redirs)
	defer undo()
	if !ok {
		sh.status, sh.flow = 1, exits
		return
	}
	pop, ok := sh.tempAssign(c.Assigns)
	defer pop()
	if !ok {
		sh.status = 1
		return
	}
	sh.status = sh.execArgs(args)
}

func (sh *shell) execArgs(args []string) int {
	args = args[1:]
	env, arg0 := sh.environ(), ""
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
			sh.errorf("exec: %s: invalid option", a)
			sh.errText("exec: usage: exec [-cl] [-a name] [command [argument ...]] [redirection ...]\n")
			return 2
		}
	}
	if len(args) == 0 {
		return 0
	}
	path := args[0]
	if strings.IndexByte(path, '/') < 0 {
		p, ok := sh.findCommand(path)
		if !ok {
			sh.errorf("exec: %s: not found", path)
			if !sh.shopts["execfail"] {
				sh.flow = exits
			}
			return 127
		}
		path = p
	}
	if arg0 != "" {
		args = append([]string{arg0}, args[1:]...)
	}
	delete(sh.traps, "EXIT")
	status := sh.runPath(path, args, append(env, "_="+path))
	sh.flow = exits
	return status
}

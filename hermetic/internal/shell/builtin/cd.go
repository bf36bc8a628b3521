package builtin

import (
	"path"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
)

// runCd is the builtin cd.
func runCd(sh *state.Shell, args []string) int {
	physical := sh.Options.On(options.Physical)
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		for _, c := range args[0][1:] {
			switch c {
			case 'P':
				physical = true
			case 'L':
				physical = false
			case 'e', '@':
			default:
				sh.Errorf("cd: -%c: invalid option", c)
				sh.ErrText("cd: usage: cd [-L|[-P [-e]] [-@]] [dir]\n")
				return 2
			}
		}
		args = args[1:]
	}
	if len(args) > 1 {
		sh.Errorf("cd: too many arguments")
		return 1
	}
	to, say, ok := destination(sh, args)
	switch {
	case !ok:
		return 1
	case to == "":
		return 0
	}
	if err := chdir(sh, to, physical); err != nil {
		sh.Errorf("cd: %s: %s", to, command.Reason(err))
		return 1
	}
	if say {
		sh.Out(sh.Dir.Path + "\n")
	}
	return 0
}

// destination is where cd goes, and whether it prints that; false after a
// message.
func destination(sh *state.Shell, args []string) (to string, say, ok bool) {
	from := "HOME"
	switch {
	case len(args) > 0 && args[0] == "-":
		from, say = "OLDPWD", true
	case len(args) > 0:
		to, say = alongCDPath(sh, args[0])
		return to, say, true
	}
	if !sh.Vars.IsSet(from) {
		sh.Errorf("cd: %s not set", from)
		return "", false, false
	}
	return sh.Vars.Get(from), say, true
}

// alongCDPath looks for a directory in $CDPATH. It reports whether cd prints
// the result: if it is not below the working directory.
func alongCDPath(sh *state.Shell, to string) (found string, say bool) {
	cdpath := sh.Vars.Get("CDPATH")
	if cdpath == "" || to == "" || path.IsAbs(to) || dotted(to) {
		return to, false
	}
	for _, d := range strings.Split(cdpath, ":") {
		info, err := sh.Session.FS.Stat(state.Join(state.Join(sh.Dir.Path, d), to))
		switch {
		case err != nil || !info.IsDir():
		case d == "":
			return to, false
		default:
			return state.Join(d, to), true
		}
	}
	return to, false
}

// dotted reports paths that do not use CDPATH.
func dotted(s string) bool {
	return s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

// chdir changes the working directory. Unless physical is true, ".." removes
// the last name of the path, even if that is a link.
func chdir(sh *state.Shell, to string, physical bool) error {
	full := state.Join(sh.Dir.Path, to)
	target := path.Clean(full)
	if physical {
		real, err := sh.Session.FS.Resolve(full)
		if err != nil {
			return err
		}
		target = real
	}
	info, err := sh.Session.FS.Stat(target)
	if err == nil && !physical {
		if _, err2 := sh.Session.FS.Stat(full); err2 != nil { // a/../b without an a
			err = err2
		}
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	case sh.Session.FS.Access(target, 1) != nil:
		return syscall.EACCES
	}
	old := sh.Vars.Get("PWD")
	sh.Dir.Path = target
	setDirVar(sh, "OLDPWD", old)
	setDirVar(sh, "PWD", target)
	return nil
}

func setDirVar(sh *state.Shell, name, val string) {
	v := sh.Vars.Target(name)
	v.Str, v.IsSet, v.Exported = val, true, true
}

// runPwd is the builtin pwd.
func runPwd(sh *state.Shell, args []string) int {
	physical := sh.Options.On(options.Physical)
	for _, a := range args[1:] {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		default:
			if strings.HasPrefix(a, "-") && len(a) > 1 && a != "--" {
				sh.Errorf("pwd: %s: invalid option", a)
				sh.ErrText("pwd: usage: pwd [-LP]\n")
				return 2
			}
		}
	}
	dir := sh.Dir.Path
	if physical {
		if real, err := sh.Session.FS.Resolve(dir); err == nil {
			dir = real
		}
	}
	sh.Commands.Running = "pwd"
	if !sh.Out(dir + "\n") {
		return 1
	}
	return 0
}

package shell

import (
	"path"
	"strconv"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

func builtinCd(sh *shell, args []string) int {
	physical := sh.on(optPhysical)
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
				sh.errorf("cd: -%c: invalid option", c)
				sh.errText("cd: usage: cd [-L|[-P [-e]] [-@]] [dir]\n")
				return 2
			}
		}
		args = args[1:]
	}
	if len(args) > 1 {
		sh.errorf("cd: too many arguments")
		return 1
	}
	to, say := "", false
	switch {
	case len(args) == 0:
		if !sh.isSet("HOME") {
			sh.errorf("cd: HOME not set")
			return 1
		}
		to = sh.get("HOME")
	case args[0] == "-":
		if !sh.isSet("OLDPWD") {
			sh.errorf("cd: OLDPWD not set")
			return 1
		}
		to, say = sh.get("OLDPWD"), true
	default:
		to = args[0]
	}
	if to == "" {
		return 0
	}
	if cdpath := sh.get("CDPATH"); cdpath != "" && len(args) > 0 && args[0] != "-" && !path.IsAbs(to) && !dotted(to) {
		for _, d := range strings.Split(cdpath, ":") {
			if info, err := sh.ses.FS.Stat(join(join(sh.dir, d), to)); err == nil && info.IsDir() {
				if d != "" {
					to, say = join(d, to), true
				}
				break
			}
		}
	}
	if err := sh.chdir(to, physical); err != nil {
		sh.errorf("cd: %s: %s", to, command.Reason(err))
		return 1
	}
	if say {
		sh.out(sh.dir + "\n")
	}
	return 0
}

func dotted(s string) bool {
	return s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

// chdir changes the working directory, by name (with ".." as text) unless
// physical.
func (sh *shell) chdir(to string, physical bool) error {
	full := join(sh.dir, to)
	target := path.Clean(full)
	if physical {
		real, err := sh.ses.FS.Resolve(full)
		if err != nil {
			return err
		}
		target = real
	}
	info, err := sh.ses.FS.Stat(target)
	if err == nil && !physical {
		if _, err2 := sh.ses.FS.Stat(full); err2 != nil { // a/../b, a not being there
			err = err2
		}
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	case sh.ses.FS.Access(target, 1) != nil:
		return syscall.EACCES
	}
	old := sh.get("PWD")
	sh.dir = target
	sh.setDirVar("OLDPWD", old)
	sh.setDirVar("PWD", target)
	return nil
}

func (sh *shell) setDirVar(name, val string) {
	v := sh.target(name)
	v.str, v.isSet, v.exported = val, true, true
}

func builtinPwd(sh *shell, args []string) int {
	physical := sh.on(optPhysical)
	for _, a := range args[1:] {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		default:
			if strings.HasPrefix(a, "-") && len(a) > 1 && a != "--" {
				sh.errorf("pwd: %s: invalid option", a)
				sh.errText("pwd: usage: pwd [-LP]\n")
				return 2
			}
		}
	}
	dir := sh.dir
	if physical {
		if real, err := sh.ses.FS.Resolve(dir); err == nil {
			dir = real
		}
	}
	sh.running = "pwd"
	if !sh.out(dir + "\n") {
		return 1
	}
	return 0
}

func builtinPushd(sh *shell, args []string) int {
	who := args[0]
	args = args[1:]
	noCd := false
	if len(args) > 0 && args[0] == "-n" {
		noCd, args = true, args[1:]
	}
	stack := append([]string{sh.dir}, sh.dirStack...)
	index := func(a string) int {
		n, err := strconv.Atoi(a[1:])
		if err != nil {
			return -1
		}
		if a[0] == '-' {
			n = len(stack) - 1 - n
		}
		if n >= len(stack) {
			return -1
		}
		return n
	}
	isIndex := len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '+' || args[0][0] == '-')
	switch {
	case who == "popd":
		if len(stack) < 2 {
			sh.errorf("popd: directory stack empty")
			return 1
		}
		n := 0
		if isIndex {
			if n = index(args[0]); n < 0 {
				sh.errorf("popd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
				return 1
			}
		} else if len(args) > 0 {
			sh.errorf("popd: %s: invalid argument", args[0])
			return 2
		}
		if noCd && n == 0 {
			n = 1
		}
		stack = append(stack[:n:n], stack[n+1:]...)
	case isIndex:
		n := index(args[0])
		if n < 0 {
			sh.errorf("pushd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
			return 1
		}
		stack = append(append([]string{}, stack[n:]...), stack[:n]...)
	case len(args) == 0:
		if len(stack) < 2 {
			sh.errorf("pushd: no other directory")
			return 1
		}
		stack[0], stack[1] = stack[1], stack[0]
	case noCd:
		stack = append([]string{sh.dir, args[0]}, sh.dirStack...)
	default:
		old := sh.dir
		if err := sh.chdir(args[0], false); err != nil {
			sh.errorf("pushd: %s: %s", args[0], command.Reason(err))
			return 1
		}
		stack = append([]string{sh.dir, old}, sh.dirStack...)
	}
	sh.checkArray(len(stack))
	if !noCd && stack[0] != sh.dir {
		if err := sh.chdir(stack[0], false); err != nil {
			sh.errorf("%s: %s: %s", who, stack[0], command.Reason(err))
			return 1
		}
	}
	sh.dirStack = stack[1:]
	return builtinDirs(sh, []string{"dirs"})
}

func builtinDirs(sh *shell, args []string) int {
	stack := append([]string{sh.dir}, sh.dirStack...)
	long, lines, numbers := false, false, false
	for _, a := range args[1:] {
		switch {
		case a == "-c":
			sh.dirStack = nil
			return 0
		case len(a) > 1 && (a[0] == '+' || a[0] == '-') && a[1] >= '0' && a[1] <= '9':
			n, _ := strconv.Atoi(a[1:])
			if a[0] == '-' {
				n = len(stack) - 1 - n
			}
			if n < 0 || n >= len(stack) {
				sh.errorf("dirs: %s: directory stack index out of range", a[1:])
				return 1
			}
			sh.out(sh.tildeDir(stack[n]) + "\n")
			return 0
		case len(a) > 1 && a[0] == '-':
			for _, c := range a[1:] {
				switch c {
				case 'l':
					long = true
				case 'p':
					lines = true
				case 'v':
					numbers = true
				default:
					sh.errorf("dirs: -%c: invalid option", c)
					sh.errText("dirs: usage: dirs [-clpv] [+N] [-N]\n")
					return 2
				}
			}
		}
	}
	out := make([]string, len(stack))
	for i, d := range stack {
		if !long {
			d = sh.tildeDir(d)
		}
		if numbers {
			d = leftPad(strconv.Itoa(i), 2) + "  " + d
		}
		out[i] = d
	}
	sep := " "
	if lines || numbers {
		sep = "\n"
	}
	sh.out(strings.Join(out, sep) + "\n")
	return 0
}

func leftPad(s string, n int) string {
	if len(s) >= n {
		return s
	}
	return strings.Repeat(" ", n-len(s)) + s
}

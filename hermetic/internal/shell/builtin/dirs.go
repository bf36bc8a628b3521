package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/state"
)

// runPushd is the builtins pushd and popd.
func runPushd(sh *state.Shell, args []string) int {
	who := args[0]
	args = args[1:]
	stay := false // -n: do not change the working directory
	if len(args) > 0 && args[0] == "-n" {
		stay, args = true, args[1:]
	}
	var stack []string
	var status int
	if who == "popd" {
		stack, status = popped(sh, args, stay)
	} else {
		stack, status = pushed(sh, args, stay)
	}
	if status != 0 {
		return status
	}
	sh.CheckArray(len(stack))
	if !stay && stack[0] != sh.Dir.Path {
		if err := chdir(sh, stack[0], false); err != nil {
			sh.Errorf("%s: %s: %s", who, stack[0], command.Reason(err))
			return 1
		}
	}
	sh.Dir.Stack = stack[1:]
	return runDirs(sh, []string{"dirs"})
}

// dirStack is the directory stack with the working directory at its top.
func dirStack(sh *state.Shell) []string { return append([]string{sh.Dir.Path}, sh.Dir.Stack...) }

// isStackIndex reports arguments such as +1 and -0.
func isStackIndex(a string) bool { return len(a) > 1 && (a[0] == '+' || a[0] == '-') }

// stackIndex is where +N or -N is on a stack of n directories; -1: nowhere.
func stackIndex(a string, n int) int {
	i, err := strconv.Atoi(a[1:])
	if err != nil {
		return -1
	}
	if a[0] == '-' {
		i = n - 1 - i
	}
	if i >= n {
		return -1
	}
	return i
}

// popped is the stack after popd.
func popped(sh *state.Shell, args []string, stay bool) (stack []string, status int) {
	stack = dirStack(sh)
	if len(stack) < 2 {
		sh.Errorf("popd: directory stack empty")
		return nil, 1
	}
	n := 0
	if len(args) > 0 {
		if !isStackIndex(args[0]) {
			sh.Errorf("popd: %s: invalid argument", args[0])
			return nil, 2
		}
		if n = stackIndex(args[0], len(stack)); n < 0 {
			sh.Errorf("popd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
			return nil, 1
		}
	}
	if stay && n == 0 {
		n = 1
	}
	return append(stack[:n:n], stack[n+1:]...), 0
}

// pushed is the stack after pushd. It has already changed to a directory that
// was named, unless stay is true.
func pushed(sh *state.Shell, args []string, stay bool) (stack []string, status int) {
	stack = dirStack(sh)
	switch {
	case len(args) == 0:
		if len(stack) < 2 {
			sh.Errorf("pushd: no other directory")
			return nil, 1
		}
		stack[0], stack[1] = stack[1], stack[0]
		return stack, 0
	case isStackIndex(args[0]):
		n := stackIndex(args[0], len(stack))
		if n < 0 {
			sh.Errorf("pushd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
			return nil, 1
		}
		return append(append([]string{}, stack[n:]...), stack[:n]...), 0
	case stay:
		return append([]string{sh.Dir.Path, args[0]}, sh.Dir.Stack...), 0
	}
	old := sh.Dir.Path
	if err := chdir(sh, args[0], false); err != nil {
		sh.Errorf("pushd: %s: %s", args[0], command.Reason(err))
		return nil, 1
	}
	return append([]string{sh.Dir.Path, old}, sh.Dir.Stack...), 0
}

// runDirs is the builtin dirs.
func runDirs(sh *state.Shell, args []string) int {
	stack := dirStack(sh)
	long, lines, numbers := false, false, false
	for _, a := range args[1:] {
		switch {
		case a == "-c":
			sh.Dir.Stack = nil
			return 0
		case len(a) > 1 && (a[0] == '+' || a[0] == '-') && a[1] >= '0' && a[1] <= '9':
			n, _ := strconv.Atoi(a[1:])
			if a[0] == '-' {
				n = len(stack) - 1 - n
			}
			if n < 0 || n >= len(stack) {
				sh.Errorf("dirs: %s: directory stack index out of range", a[1:])
				return 1
			}
			sh.Out(sh.TildeDir(stack[n]) + "\n")
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
					sh.Errorf("dirs: -%c: invalid option", c)
					sh.ErrText("dirs: usage: dirs [-clpv] [+N] [-N]\n")
					return 2
				}
			}
		}
	}
	out := make([]string, len(stack))
	for i, d := range stack {
		if !long {
			d = sh.TildeDir(d)
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
	sh.Out(strings.Join(out, sep) + "\n")
	return 0
}

func leftPad(s string, n int) string {
	if len(s) >= n {
		return s
	}
	return strings.Repeat(" ", n-len(s)) + s
}

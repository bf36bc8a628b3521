package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/state"
)

func runPushd(sh *state.Shell, args []string) int {
	who := args[0]
	args = args[1:]
	noCd := false
	if len(args) > 0 && args[0] == "-n" {
		noCd, args = true, args[1:]
	}
	stack := append([]string{sh.Dir.Path}, sh.Dir.Stack...)
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
			sh.Errorf("popd: directory stack empty")
			return 1
		}
		n := 0
		if isIndex {
			if n = index(args[0]); n < 0 {
				sh.Errorf("popd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
				return 1
			}
		} else if len(args) > 0 {
			sh.Errorf("popd: %s: invalid argument", args[0])
			return 2
		}
		if noCd && n == 0 {
			n = 1
		}
		stack = append(stack[:n:n], stack[n+1:]...)
	case isIndex:
		n := index(args[0])
		if n < 0 {
			sh.Errorf("pushd: %s: directory stack index out of range", strings.TrimLeft(args[0], "+"))
			return 1
		}
		stack = append(append([]string{}, stack[n:]...), stack[:n]...)
	case len(args) == 0:
		if len(stack) < 2 {
			sh.Errorf("pushd: no other directory")
			return 1
		}
		stack[0], stack[1] = stack[1], stack[0]
	case noCd:
		stack = append([]string{sh.Dir.Path, args[0]}, sh.Dir.Stack...)
	default:
		old := sh.Dir.Path
		if err := chdir(sh, args[0], false); err != nil {
			sh.Errorf("pushd: %s: %s", args[0], command.Reason(err))
			return 1
		}
		stack = append([]string{sh.Dir.Path, old}, sh.Dir.Stack...)
	}
	sh.CheckArray(len(stack))
	if !noCd && stack[0] != sh.Dir.Path {
		if err := chdir(sh, stack[0], false); err != nil {
			sh.Errorf("%s: %s: %s", who, stack[0], command.Reason(err))
			return 1
		}
	}
	sh.Dir.Stack = stack[1:]
	return runDirs(sh, []string{"dirs"})
}

func runDirs(sh *state.Shell, args []string) int {
	stack := append([]string{sh.Dir.Path}, sh.Dir.Stack...)
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

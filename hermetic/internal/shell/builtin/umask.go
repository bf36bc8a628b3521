package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/state"
)

// runUmask is the builtin umask.
func runUmask(sh *state.Shell, args []string) int {
	symbolic, print := false, false
	args = args[1:]
	for len(args) > 0 && (args[0] == "-S" || args[0] == "-p") {
		symbolic = symbolic || args[0] == "-S"
		print = print || args[0] == "-p"
		args = args[1:]
	}
	if len(args) == 0 {
		prefix := ""
		if print {
			prefix = map[bool]string{true: "umask -S ", false: "umask "}[symbolic]
		}
		if symbolic {
			sh.Out(prefix + symbolicMode(^sh.Dir.Umask&0o777) + "\n")
		} else {
			sh.Outf("%s%04o\n", prefix, sh.Dir.Umask)
		}
		return 0
	}
	a := args[0]
	if a != "" && a[0] >= '0' && a[0] <= '9' {
		n, err := strconv.ParseUint(a, 8, 32)
		if err != nil || n > 0o777 {
			sh.Errorf("umask: %s: octal number out of range", a)
			return 1
		}
		sh.Dir.Umask = uint32(n)
		return 0
	}
	mode, ok := changeMode(^sh.Dir.Umask&0o777, a)
	if !ok {
		sh.Errorf("umask: `%s': invalid symbolic mode operator", firstOr(a))
		return 1
	}
	sh.Dir.Umask = ^mode & 0o777
	if symbolic {
		sh.Out(symbolicMode(mode) + "\n")
	}
	return 0
}

func firstOr(s string) string {
	if s == "" {
		return s
	}
	return s[:1]
}

// symbolicMode writes permissions as u=rwx,g=rx,o=.
func symbolicMode(m uint32) string {
	var parts []string
	for i, who := range []string{"u", "g", "o"} {
		bits := m >> (6 - 3*i) & 7
		s := who + "="
		for j, c := range "rwx" {
			if bits&(4>>j) != 0 {
				s += string(c)
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ",")
}

// changeMode applies text such as u+w to a mode; false if text is not valid.
func changeMode(mode uint32, text string) (uint32, bool) {
	for _, clause := range strings.Split(text, ",") {
		i := 0
		var who uint32
		for i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0 {
			who |= map[byte]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[clause[i]]
			i++
		}
		if who == 0 {
			who = 0o777
		}
		if i == len(clause) || strings.IndexByte("+-=", clause[i]) < 0 {
			return 0, false
		}
		for i < len(clause) {
			op := clause[i]
			i++
			var bits uint32
			for i < len(clause) && strings.IndexByte("+-=", clause[i]) < 0 {
				b, ok := map[byte]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111}[clause[i]]
				if !ok {
					return 0, false
				}
				bits |= b
				i++
			}
			switch op {
			case '+':
				mode |= bits & who
			case '-':
				mode &^= bits & who
			default:
				mode = mode&^who | bits&who
			}
		}
	}
	return mode, true
}

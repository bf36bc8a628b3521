package shell

import (
	"slices"
	"strings"
)

func builtinCompgen(sh *shell, args []string) int {
	var out []string
	prefix := ""
	args = args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch a {
		case "-W":
			if len(args) > 0 {
				out = append(out, strings.Fields(sh.expandText(args[0]))...)
				args = args[1:]
			}
		case "-v":
			out = append(out, sh.names()...)
		case "-A":
			if len(args) > 0 {
				out = append(out, sh.generated(args[0])...)
				args = args[1:]
			}
		case "-b", "-k", "-a", "-c", "-f", "-d", "-e":
			out = append(out, sh.generated(map[string]string{
				"-b": "builtin", "-k": "keyword", "-a": "alias", "-c": "command", "-f": "file", "-d": "directory", "-e": "export",
			}[a])...)
		case "--":
		default:
			prefix = a
		}
	}
	status := 1
	for _, n := range out {
		if strings.HasPrefix(n, prefix) {
			sh.out(n + "\n")
			status = 0
		}
	}
	return status
}

func (sh *shell) generated(what string) (out []string) {
	switch what {
	case "function":
		for n := range sh.funcs {
			out = append(out, n)
		}
	case "builtin":
		return builtinNames()
	case "alias":
		for n := range sh.aliases {
			out = append(out, n)
		}
	case "variable":
		return sh.names()
	case "export":
		for _, kv := range sh.environ() {
			n, _, _ := strings.Cut(kv, "=")
			out = append(out, n)
		}
	case "keyword":
		return []string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc"}
	case "file", "directory":
		entries, _ := sh.ses.FS.ReadDir(sh.dir)
		for _, e := range entries {
			if what == "file" || e.IsDir() {
				out = append(out, e.Name())
			}
		}
	case "command":
		for n := range sh.ses.table {
			out = append(out, n)
		}
		out = append(out, builtinNames()...)
	}
	slices.Sort(out)
	return out
}

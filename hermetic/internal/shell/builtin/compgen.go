package builtin

import (
	"slices"
	"strings"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
)

// runCompgen is the builtin compgen.
func runCompgen(sh *state.Shell, args []string) int {
	var out []string
	prefix := ""
	args = args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch a {
		case "-W":
			if len(args) > 0 {
				out = append(out, strings.Fields(expand.Text(sh, args[0]))...)
				args = args[1:]
			}
		case "-v":
			out = append(out, sh.Vars.Names()...)
		case "-A":
			if len(args) > 0 {
				out = append(out, generated(sh, args[0])...)
				args = args[1:]
			}
		case "-b", "-k", "-a", "-c", "-f", "-d", "-e":
			out = append(out, generated(sh, map[string]string{
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
			sh.Out(n + "\n")
			status = 0
		}
	}
	return status
}

// generated lists the names of one kind.
func generated(sh *state.Shell, what string) (out []string) {
	switch what {
	case "function":
		for n := range sh.Commands.Funcs {
			out = append(out, n)
		}
	case "builtin":
		return Names()
	case "alias":
		for n := range sh.Commands.Aliases {
			out = append(out, n)
		}
	case "variable":
		return sh.Vars.Names()
	case "export":
		for _, kv := range sh.Environ() {
			n, _, _ := strings.Cut(kv, "=")
			out = append(out, n)
		}
	case "keyword":
		return []string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc"}
	case "file", "directory":
		entries, _ := sh.Session.FS.ReadDir(sh.Dir.Path)
		for _, e := range entries {
			if what == "file" || e.IsDir() {
				out = append(out, e.Name())
			}
		}
	case "command":
		for n := range sh.Session.Table {
			out = append(out, n)
		}
		out = append(out, Names()...)
	}
	slices.Sort(out)
	return out
}

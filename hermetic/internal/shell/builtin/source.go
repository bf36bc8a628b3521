package builtin

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// runEval is the builtin eval.
func runEval(sh *state.Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" {
		return 0
	}
	line := sh.Line
	if sh.Current != nil { // lines are counted from the last line of the command
		sh.Line = max(line, int(sh.Current.End().Line())+sh.UnitBase()+sh.LineShift)
	}
	sh.EvalText(text)
	sh.Line = line
	return sh.Status
}

// runSource is the builtins source and dot.
func runSource(sh *state.Shell, args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		sh.Errorf("%s: filename argument required", args[0])
		sh.ErrText(args[0] + ": usage: " + args[0] + " filename [arguments]\n")
		return 2
	}
	name := args[1]
	full := state.Join(sh.Dir.Path, name)
	if strings.IndexByte(name, '/') < 0 {
		for _, d := range strings.Split(sh.Vars.Get("PATH"), ":") {
			p := state.Join(state.Join(sh.Dir.Path, d), name)
			if info, err := sh.Session.FS.Stat(p); err == nil && info.Mode().IsRegular() {
				full = p
				break
			}
		}
	}
	if info, err := redirect.Stat(sh, full); err == nil && info.IsDir() {
		sh.Errorf("%s: %s: is a directory", args[0], name)
		return 1
	}
	text, err := ReadFile(sh, full)
	if err != nil {
		sh.Errorf("%s: %s", name, command.Reason(err))
		if sh.Program.Posix {
			sh.Flow = state.Exits
		}
		return 1
	}
	if IsBinary(text) {
		sh.Errorf("source: %s: cannot execute binary file", name)
		return 126
	}
	sh.SourceText(name, text, args[2:])
	return sh.Status
}

// IsBinary reports whether the first line of a text has a NUL: then it is not a
// script.
func IsBinary(text string) bool {
	first, _, _ := strings.Cut(text[:min(len(text), 80)], "\n")
	return strings.IndexByte(first, 0) >= 0
}

// ReadFile reads a script. It ends the shell if the script exceeds the limit.
func ReadFile(sh *state.Shell, full string) (string, error) {
	f, err := redirect.Open(sh, full, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return ReadScript(sh, stream.Bound{Ctx: sh.Ctx, File: f})
}

// ReadScript reads a script from r. It ends the shell if the script exceeds the
// limit.
func ReadScript(sh *state.Shell, r io.Reader) (string, error) {
	most := sh.Session.Budget.Limits.Source
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(r, most+1))
	if int64(b.Len()) > most {
		sh.Exceed(&limits.Exceeded{Name: "source", Limit: most, What: "bytes are in one script"})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return b.String(), nil
}

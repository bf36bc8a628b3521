package shell

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
)

// runFile runs a script file that was given to bash.
func runFile(sh *state.Shell, name string, params []string) {
	full := state.Join(sh.Dir.Path, name)
	if _, err := sh.Session.FS.Stat(full); err != nil && strings.IndexByte(name, '/') < 0 {
		if p, ok := sh.Session.LookPath(sh.Dir.Path, name, sh.Vars.Get("PATH")); ok && !state.IsBin(path.Dir(p)) {
			full = state.Join(sh.Dir.Path, p)
		}
	}
	if info, err := sh.Session.FS.Stat(full); err == nil && info.IsDir() {
		sh.ErrText(sh.Program.Arg0 + ": " + name + ": Is a directory\n")
		sh.Status = 126
		return
	}
	text, err := redirect.ReadFile(sh, full)
	if err != nil {
		sh.ErrText(sh.Program.Arg0 + ": " + name + ": " + command.Reason(err) + "\n")
		sh.Status = 127
		if command.Reason(err) == "Permission denied" {
			sh.Status = 126
		}
		return
	}
	if redirect.IsBinary(text) {
		sh.ErrText(name + ": " + name + ": cannot execute binary file\n")
		sh.Status = 126
		return
	}
	sh.Program.Arg0, sh.Program.Script, sh.Params.List = name, name, params
	runText(sh, text, name)
}

// runStdin runs the script on the standard input.
func runStdin(sh *state.Shell) {
	text, err := redirect.ReadScript(sh, sh.Stream(0))
	if err != nil {
		sh.Check()
		return
	}
	runText(sh, text, "")
}

// script runs a file according to its first line.
func script(ctx context.Context, s *state.Session, c *command.Call, what state.Target) int {
	head, err := head(s, what.Script)
	if err != nil {
		c.Errorf("%s", command.Reason(err))
		return 126
	}
	line, isInterp := strings.CutPrefix(head, "#!")
	if !isInterp {
		if strings.IndexByte(head, 0) >= 0 {
			arg0 := "bash"
			io.WriteString(c.Stderr, arg0+": line 1: "+what.Name+": cannot execute binary file: Exec format error\n") //nolint:errcheck // as bash
			return 126
		}
		return asShell(ctx, s, c, "bash", what.Name, nil)
	}
	interp, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	base := path.Base(interp)
	if base == "env" {
		words := strings.Fields(strings.TrimPrefix(arg, "-S"))
		if len(words) == 0 {
			return 127
		}
		if !s.Has(path.Base(words[0])) {
			io.WriteString(c.Stderr, "/usr/bin/env: ‘"+words[0]+"’: No such file or directory\n") //nolint:errcheck // as env
			return 127
		}
		base, arg = path.Base(words[0]), strings.Join(words[1:], " ")
	}
	if base == "dash" || base == "ash" || base == "ksh" {
		base = "sh"
	}
	if !s.Has(base) {
		io.WriteString(c.Stderr, "bash: "+what.Name+": "+interp+": bad interpreter: No such file or directory\n") //nolint:errcheck // as bash
		return 126
	}
	var opts []string
	if arg != "" {
		opts = []string{arg}
	}
	if base == "sh" || base == "bash" {
		return asShell(ctx, s, c, base, what.Name, opts)
	}
	args := append(append([]string{base}, opts...), what.Name)
	return s.Table[base](ctx, c.With(append(args, c.Args[1:]...), nil, nil, nil)) & 255
}

// asShell runs a file as a script of sh or bash.
func asShell(ctx context.Context, s *state.Session, c *command.Call, name, file string, opts []string) int {
	args := append(append([]string{name}, opts...), file)
	return child(ctx, s, c.With(append(args, c.Args[1:]...), nil, nil, nil))
}

// head is the first line of a file.
func head(s *state.Session, full string) (string, error) {
	f, err := s.FS.Open(full)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 256)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	return line, nil
}

// sourceText runs a file in this shell, as source does.
func sourceText(sh *state.Shell, name, text string, params []string) {
	sh.Deeper()
	old, line := sh.Params.List, sh.Line
	if len(params) > 0 {
		sh.Params.List, sh.Params.Given = params, false
	}
	sh.Frames = append(sh.Frames, state.Frame{Name: "source", Source: name, CallLine: sh.Line})
	defer func() {
		sh.Frames = sh.Frames[:len(sh.Frames)-1]
		if len(params) > 0 && !sh.Params.Given { // parameters that set gave stay
			sh.Params.List = old
		}
		sh.Line = line
		sh.Work.Calls--
	}()
	sh.Status = 0
	runText(sh, text, name)
	if sh.Flow == state.Returns {
		sh.Flow = state.GoesOn
	}
	if sh.Flow == state.GoesOn {
		jobs.RunTrap(sh, "RETURN")
	}
}

// runText parses and runs a script. As in bash, the lines before a mistake run.
func runText(sh *state.Shell, text, name string) {
	text = strings.ReplaceAll(text, "\x00", "")
	script := sh.Parse(text)
	u := &state.Unit{Name: name, Text: script.Text}
	old := sh.Unit
	sh.Unit = u
	defer func() { sh.Unit = old }()
	runScript(sh, script, name == state.CommandUnit)
}

// runScript runs the lines of a script. A line that ends early does not end the
// script.
func runScript(sh *state.Shell, script *scan.Script, isCommand bool) {
	for _, group := range script.Lines {
		if sh.Options.On(options.Verbose) {
			sh.ErrText(script.TextOf(group) + "\n")
		}
		seeAliases(sh)
		runLine(sh, group)
		if sh.Flow != state.GoesOn {
			if sh.Flow == state.Breaks || sh.Flow == state.Continues {
				sh.Flow = state.GoesOn
				continue
			}
			return
		}
	}
	for _, w := range script.Warnings {
		sh.Line = w.Line + sh.UnitBase()
		sh.Errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		syntaxError(sh, m, isCommand)
	}
}

// runLine runs the statements of one line.
func runLine(sh *state.Shell, group []*syntax.Stmt) {
	defer func() {
		if x := recover(); x != nil {
			d, ok := x.(state.Discard)
			if !ok {
				panic(x)
			}
			sh.Status = d.Status
			sh.NoErrExit, sh.Work.Tree = 0, 0
			if sh.Options.On(options.ErrExit) || len(sh.Frames) > 0 {
				panic(x)
			}
		}
	}()
	stmts(sh, group)
}

// syntaxError reports a mistake as bash does, and ends the shell with status 2.
func syntaxError(sh *state.Shell, m *scan.Mistake, isCommand bool) {
	name := sh.Program.Arg0
	if n := len(sh.Frames); n > 0 && sh.Frames[n-1].Source != "" {
		name = sh.Frames[n-1].Source
	}
	if isCommand && len(sh.Frames) == 0 {
		name += ": -c"
	}
	for _, l := range m.Say(name, sh.UnitBase()) {
		sh.ErrText(l + "\n")
	}
	sh.Status = 2
	if len(sh.Frames) == 0 {
		sh.Flow = state.Exits
	}
}

// evalText runs text in this shell, as eval and traps do.
func evalText(sh *state.Shell, text string) {
	sh.Deeper()
	defer func() { sh.Work.Calls-- }()
	script := sh.Parse(text)
	old, line := sh.Unit, sh.Line
	name := ""
	if old != nil {
		name = old.Name
	}
	sh.Unit = &state.Unit{Name: name, Text: script.Text, Base: line - 1}
	defer func() { sh.Unit, sh.Line = old, line }()
	if len(script.Lines) == 0 {
		sh.Status = 0
	}
	for _, group := range script.Lines {
		seeAliases(sh)
		stmts(sh, group)
		if sh.Flow != state.GoesOn {
			return
		}
	}
	for _, w := range script.Warnings {
		sh.Errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		for _, l := range m.Say(sh.Program.Arg0+": eval", line-1) {
			sh.ErrText(l + "\n")
		}
		sh.Status = 2
		if sh.Program.Posix {
			sh.Flow = state.Exits
		}
	}
}

package shell

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/builtin"
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
	text, err := builtin.ReadFile(sh, full)
	if err != nil {
		sh.ErrText(sh.Program.Arg0 + ": " + name + ": " + command.Reason(err) + "\n")
		sh.Status = 127
		if command.Reason(err) == "Permission denied" {
			sh.Status = 126
		}
		return
	}
	if builtin.IsBinary(text) {
		sh.ErrText(name + ": " + name + ": cannot execute binary file\n")
		sh.Status = 126
		return
	}
	sh.Program.Arg0, sh.Program.Script, sh.Params.List = name, name, params
	runText(sh, text, name)
}

// runStdin runs the script on the standard input.
func runStdin(sh *state.Shell) {
	text, err := builtin.ReadScript(sh, sh.Stream(0))
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

package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// child runs the command sh or bash: a shell with only what is exported.
func (s *session) child(ctx context.Context, c *command.Call) int {
	sh := s.childShell(ctx, c)
	o, ok := sh.shellArgs(c.Args[1:])
	if !ok {
		sh.release()
		return 2
	}
	if o.done {
		sh.release()
		return 0
	}
	return sh.subshell(func() {
		switch {
		case o.command:
			sh.opts |= optCommand
			sh.runText(o.text, commandUnit)
		case len(o.rest) > 0 && !o.stdin:
			sh.runFile(o.rest[0], o.rest[1:])
		default:
			sh.params = o.rest
			sh.opts |= optStdin
			sh.runStdin()
		}
	})
}

// childShell makes the shell of a call: its streams, its environment, and what
// a process would inherit.
func (s *session) childShell(ctx context.Context, c *command.Call) *shell {
	var parent *proc
	in, _ := ctx.Value(inheritedKey{}).(*inherited)
	if in != nil {
		parent = in.proc
	}
	base := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	sh := s.newShell(ctx, cancel, parent, c.Env)
	sh.run.base = base
	sh.run.arg0 = c.Args[0]
	sh.run.posix = path.Base(c.Args[0]) == "sh"
	sh.dir, sh.umask = c.Dir, uint32(c.Umask)
	for n, f := range descriptorsOf(ctx, c) {
		sh.fds[n] = f.Dup()
	}
	if in != nil {
		sh.depth = in.depth
		for sig := range in.trap {
			sh.traps[sig] = ""
		}
	}
	sh.initVars()
	sh.deeper()
	return sh
}

type shellOptions struct {
	command, stdin, done bool
	text                 string
	rest                 []string
}

// shellArgs reads the options that bash is called with.
func (sh *shell) shellArgs(args []string) (o shellOptions, ok bool) {
	for len(args) > 0 {
		a := args[0]
		if a == "--" || a == "-" {
			args = args[1:]
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		args = args[1:]
		if strings.HasPrefix(a, "--") {
			switch a {
			case "--version":
				io.WriteString(sh.bound(1), "GNU bash, version "+bashVersion+" (x86_64-pc-linux-gnu)\n") //nolint:errcheck // as bash
				o.done = true
				return o, true
			case "--norc", "--noprofile", "--login", "--noediting", "--restricted", "--verbose":
			case "--posix":
				sh.opts |= optPosix
			case "--rcfile", "--init-file":
				if len(args) > 0 {
					args = args[1:]
				}
			default:
				sh.errText("bash: " + a + ": invalid option\n")
				return o, false
			}
			continue
		}
		for _, letter := range a[1:] {
			switch letter {
			case 'c':
				o.command = true
			case 's':
				o.stdin = true
			case 'l', 'i', 'r':
			case 'o', 'O':
				if len(args) == 0 {
					continue
				}
				if letter == 'O' {
					sh.shopts[args[0]] = a[0] == '-'
				} else if !sh.setOptions([]string{a[:1] + "o", args[0]}) {
					return o, false
				}
				args = args[1:]
			default:
				if !sh.setOptions([]string{a[:1] + string(letter)}) {
					return o, false
				}
			}
		}
	}
	if o.command {
		if len(args) == 0 {
			sh.errText(sh.run.arg0 + ": -c: option requires an argument\n")
			return o, false
		}
		o.text, args = args[0], args[1:]
		if len(args) > 0 {
			sh.run.arg0, sh.params = args[0], args[1:]
		}
	}
	o.rest = args
	return o, true
}

// runFile runs a script file that bash was given.
func (sh *shell) runFile(name string, params []string) {
	full := join(sh.dir, name)
	if _, err := sh.ses.FS.Stat(full); err != nil && strings.IndexByte(name, '/') < 0 {
		if p, ok := sh.ses.lookPath(sh.dir, name, sh.get("PATH")); ok && !isBin(path.Dir(p)) {
			full = join(sh.dir, p)
		}
	}
	if info, err := sh.ses.FS.Stat(full); err == nil && info.IsDir() {
		sh.errText(sh.run.arg0 + ": " + name + ": Is a directory\n")
		sh.status = 126
		return
	}
	text, err := sh.readAll(full)
	if err != nil {
		sh.errText(sh.run.arg0 + ": " + name + ": " + command.Reason(err) + "\n")
		sh.status = 127
		if command.Reason(err) == "Permission denied" {
			sh.status = 126
		}
		return
	}
	if binary(text) {
		sh.errText(name + ": " + name + ": cannot execute binary file\n")
		sh.status = 126
		return
	}
	sh.run.arg0, sh.run.script, sh.params = name, name, params
	sh.runText(text, name)
}

func binary(text string) bool {
	first, _, _ := strings.Cut(text[:min(len(text), 80)], "\n")
	return strings.IndexByte(first, 0) >= 0
}

// readAll reads a script within the limit.
func (sh *shell) readAll(full string) (string, error) {
	f, err := sh.open(full, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return sh.readScript(stream.Bound{Ctx: sh.ctx, File: f})
}

func (sh *shell) readScript(r io.Reader) (string, error) {
	most := sh.ses.Budget.Limits.Source
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(r, most+1))
	if int64(b.Len()) > most {
		sh.exceed(&limits.Exceeded{Name: "source", Limit: most, What: "bytes are in one script"})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return b.String(), nil
}

// runStdin runs the script on the standard input.
func (sh *shell) runStdin() {
	text, err := sh.readScript(sh.bound(0))
	if err != nil {
		sh.check()
		return
	}
	sh.runText(text, "")
}

// script runs a file by its first line.
func (s *session) script(ctx context.Context, c *command.Call, what thing) int {
	head, err := s.head(what.script)
	if err != nil {
		c.Errorf("%s", command.Reason(err))
		return 126
	}
	line, isInterp := strings.CutPrefix(head, "#!")
	if !isInterp {
		if strings.IndexByte(head, 0) >= 0 {
			arg0 := "bash"
			io.WriteString(c.Stderr, arg0+": line 1: "+what.name+": cannot execute binary file: Exec format error\n") //nolint:errcheck // as bash
			return 126
		}
		return s.asShell(ctx, c, "bash", what.name, nil)
	}
	interp, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	base := path.Base(interp)
	if base == "env" {
		words := strings.Fields(strings.TrimPrefix(arg, "-S"))
		if len(words) == 0 {
			return 127
		}
		if !s.has(path.Base(words[0])) {
			io.WriteString(c.Stderr, "/usr/bin/env: ‘"+words[0]+"’: No such file or directory\n") //nolint:errcheck // as env
			return 127
		}
		base, arg = path.Base(words[0]), strings.Join(words[1:], " ")
	}
	if base == "dash" || base == "ash" || base == "ksh" {
		base = "sh"
	}
	if !s.has(base) {
		io.WriteString(c.Stderr, "bash: "+what.name+": "+interp+": bad interpreter: No such file or directory\n") //nolint:errcheck // as bash
		return 126
	}
	var opts []string
	if arg != "" {
		opts = []string{arg}
	}
	if base == "sh" || base == "bash" {
		return s.asShell(ctx, c, base, what.name, opts)
	}
	args := append(append([]string{base}, opts...), what.name)
	return s.table[base](ctx, c.With(append(args, c.Args[1:]...), nil, nil, nil)) & 255
}

func (s *session) asShell(ctx context.Context, c *command.Call, name, file string, opts []string) int {
	args := append(append([]string{name}, opts...), file)
	return s.child(ctx, c.With(append(args, c.Args[1:]...), nil, nil, nil))
}

// head is the first line of a file.
func (s *session) head(full string) (string, error) {
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

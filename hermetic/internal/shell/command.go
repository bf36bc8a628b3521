package shell

import (
	"context"
	"fmt"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
)

// inherited is what a command that is itself a shell gets from its parent,
// through the context: what a process would inherit.
type inherited struct {
	fds     map[int]*stream.File
	proc    *proc.Proc
	depth   int
	ignored map[string]bool // signals that the shell ignores
}

type inheritedKey struct{}

// external runs a command that is not a function and not a builtin.
func external(sh *state.Shell, args []string) int {
	name := args[0]
	path := name
	if strings.IndexByte(name, '/') < 0 {
		found, ok := sh.FindCommand(name)
		if !ok {
			if f := sh.Commands.Funcs["command_not_found_handle"]; f != nil {
				sub := sh.Clone()
				status := subshell(sub, func() { callFunction(sub, f, append([]string{"command_not_found_handle"}, args...)) })
				return status
			}
			if sh.Vars.Get("PATH") == "" && !strings.HasPrefix(found, "/") {
				sh.Errorf("%s: No such file or directory", name)
				return 127
			}
			sh.Errorf("%s: command not found", name)
			return 127
		}
		path = found
	}
	return runPath(sh, path, args, append(sh.Environ(), "_="+path))
}

// runPath runs the command or script at path.
func runPath(sh *state.Shell, path string, args, env []string) int {
	what, err := sh.Session.At(sh.Dir.Path, path)
	if err != "" {
		sh.Errorf("%s: %s", path, err)
		if err == "No such file or directory" {
			return 127
		}
		return 126
	}
	c := &command.Call{
		Args: args, Dir: sh.Dir.Path, Env: env, Umask: sh.Dir.Mask(),
		Stdin: sh.Stream(0), Stdout: sh.Stream(1), Stderr: sh.Stream(2),
		Session: sh.Session.Session,
	}
	in := &inherited{fds: sh.FDs.Open, proc: sh.Proc, depth: sh.Work.Calls, ignored: map[string]bool{}}
	for sig, action := range sh.Traps.Actions {
		if action == "" {
			in.ignored[sig] = true
		}
	}
	ctx := context.WithValue(sh.Ctx, inheritedKey{}, in)
	status := perform(ctx, sh.Session, c, what)
	if n := sh.Proc.Killed.Load(); n > 0 {
		return 128 + int(n)
	}
	sh.CheckLimit()
	sh.Check()
	return status
}

// perform runs a command, a script or a shell as c. A command that panics has
// exit status 125.
func perform(ctx context.Context, s *state.Session, c *command.Call, what state.Target) (status int) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case state.Ended, state.Discard:
			panic(x)
		default:
			c.Errorf("a bug ended this command: %v", x)
			status = 125
		}
	}()
	ses := *c.Session
	fds := descriptorsOf(ctx, c)
	ses.FS = redirect.View(s.FS, fds, func(f *stream.File) stream.Bound { return stream.Bound{Ctx: ctx, File: f} })
	d := *c
	d.Session = &ses
	d.Stdin, d.Stdout, d.Stderr = rebind(ctx, c.Stdin), c.Stdout, c.Stderr
	if b, ok := c.Stdout.(stream.Bound); ok {
		d.Stdout = stream.Bound{Ctx: ctx, File: b.File}
	}
	if b, ok := c.Stderr.(stream.Bound); ok {
		d.Stderr = stream.Bound{Ctx: ctx, File: b.File}
	}
	if what.Script != "" {
		return script(ctx, s, &d, what)
	}
	if what.Name == "sh" || what.Name == "bash" {
		return child(ctx, s, &d)
	}
	f := s.Table[what.Name]
	status = f(ctx, &d) & 255
	return status
}

// rebind puts a stream of the shell under ctx.
func rebind(ctx context.Context, r io.Reader) io.Reader {
	if b, ok := r.(stream.Bound); ok {
		return stream.Bound{Ctx: ctx, File: b.File}
	}
	return r
}

// descriptorsOf is the open files of a call: its three streams, and the other
// descriptors of its shell.
func descriptorsOf(ctx context.Context, c *command.Call) map[int]*stream.File {
	fds := map[int]*stream.File{}
	if in, ok := ctx.Value(inheritedKey{}).(*inherited); ok {
		for n, f := range in.fds {
			if n > 2 {
				fds[n] = f
			}
		}
	}
	fds[0] = stream.From(c.Stdin, nil)
	fds[1] = stream.From(nil, c.Stdout)
	fds[2] = stream.From(nil, c.Stderr)
	for n, f := range fds {
		if f == nil {
			delete(fds, n)
		}
	}
	return fds
}

// execCall is command.Session.Exec: a command runs another one.
func execCall(ctx context.Context, s *state.Session, c *command.Call) int {
	name, path := c.Args[0], c.Args[0]
	if strings.IndexByte(name, '/') < 0 {
		found, ok := s.LookPath(c.Dir, name, c.Getenv("PATH"))
		if !ok {
			fmt.Fprintf(c.Stderr, "%s: command not found\n", name)
			return 127
		}
		path = found
	}
	what, why := s.At(c.Dir, path)
	switch why {
	case "":
	case "No such file or directory":
		fmt.Fprintf(c.Stderr, "%s: %s\n", path, why)
		return 127
	default:
		fmt.Fprintf(c.Stderr, "%s: %s\n", path, why)
		return 126
	}
	if in, ok := ctx.Value(inheritedKey{}).(*inherited); ok {
		d := *in
		d.depth++
		if most := s.Budget.Limits.Calls; int64(d.depth) > most {
			s.TooDeep(most)
			return 126
		}
		ctx = context.WithValue(ctx, inheritedKey{}, &d)
	}
	if s.Budget.Command() != nil {
		return 126
	}
	return perform(ctx, s, c, what)
}

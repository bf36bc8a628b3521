package shell

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/stream"
)

// inherited is what a command that is a shell itself gets from its parent by
// way of the context: what a process would inherit.
type inherited struct {
	fds   map[int]*stream.File
	proc  *proc
	depth int
	trap  map[string]bool // ignored signals
}

type inheritedKey struct{}

// external runs a command of the table or a script.
func (sh *shell) external(args []string) int {
	name := args[0]
	path := name
	if strings.IndexByte(name, '/') < 0 {
		found, ok := sh.findCommand(name)
		if !ok {
			if f := sh.funcs["command_not_found_handle"]; f != nil {
				sub := sh.clone()
				status := sub.subshell(func() { sub.callFunction(f, append([]string{"command_not_found_handle"}, args...)) })
				return status
			}
			if sh.get("PATH") == "" && !strings.HasPrefix(found, "/") {
				sh.errorf("%s: No such file or directory", name)
				return 127
			}
			sh.errorf("%s: command not found", name)
			return 127
		}
		path = found
	}
	return sh.runPath(path, args, append(sh.environ(), "_="+path))
}

// runPath runs what is at path with args.
func (sh *shell) runPath(path string, args, env []string) int {
	what, err := sh.ses.at(sh.dir, path)
	if err != "" {
		sh.errorf("%s: %s", path, err)
		if err == "No such file or directory" {
			return 127
		}
		return 126
	}
	c := &command.Call{
		Args: args, Dir: sh.dir, Env: env, Umask: sh.mask(),
		Stdin: sh.bound(0), Stdout: sh.bound(1), Stderr: sh.bound(2),
		Session: sh.ses.Session,
	}
	in := &inherited{fds: sh.fds, proc: sh.proc, depth: sh.depth}
	in.trap = map[string]bool{}
	for sig, action := range sh.traps {
		if action == "" {
			in.trap[sig] = true
		}
	}
	ctx := context.WithValue(sh.ctx, inheritedKey{}, in)
	status := sh.ses.perform(ctx, c, what)
	if n := sh.proc.killed.Load(); n > 0 {
		return 128 + int(n)
	}
	sh.checkLimit()
	sh.check()
	return status
}

// thing is what a name of a command turned out to be.
type thing struct {
	name   string // of the table, or "sh" or "bash"
	script string // path of a script
}

// perform runs a thing as c, whatever shell or command asks.
func (s *session) perform(ctx context.Context, c *command.Call, what thing) (status int) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case ended, discard:
			panic(x)
		default:
			c.Errorf("a bug ended this command: %v", x)
			status = 125
		}
	}()
	ses := *c.Session
	fds := descriptorsOf(ctx, c)
	ses.FS = viewOf(s.FS, fds, func(f *stream.File) stream.Bound { return stream.Bound{Ctx: ctx, File: f} })
	d := *c
	d.Session = &ses
	d.Stdin, d.Stdout, d.Stderr = rebind(ctx, c.Stdin), c.Stdout, c.Stderr
	if b, ok := c.Stdout.(stream.Bound); ok {
		d.Stdout = stream.Bound{Ctx: ctx, File: b.File}
	}
	if b, ok := c.Stderr.(stream.Bound); ok {
		d.Stderr = stream.Bound{Ctx: ctx, File: b.File}
	}
	if what.script != "" {
		return s.script(ctx, &d, what)
	}
	if what.name == "sh" || what.name == "bash" {
		return s.child(ctx, &d)
	}
	f := s.table[what.name]
	status = f(ctx, &d) & 255
	return status
}

func rebind(ctx context.Context, r io.Reader) io.Reader {
	if b, ok := r.(stream.Bound); ok {
		return stream.Bound{Ctx: ctx, File: b.File}
	}
	return r
}

// descriptorsOf are the open files of a call: its three streams, and what its
// shell had besides.
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

// isBin reports the directories where the commands of the table are.
func isBin(dir string) bool {
	return dir == "/bin" || dir == "/usr/bin"
}

// has reports a command by name.
func (s *session) has(name string) bool {
	return name == "sh" || name == "bash" || s.table[name] != nil
}

// at looks at the file or command of a path; why is bash's reason.
func (s *session) at(dir, path string) (what thing, why string) {
	full := join(dir, path)
	info, err := s.FS.Stat(full)
	if err != nil {
		if isBin(full) || full == "/usr" {
			return what, "Is a directory"
		}
		if i := strings.LastIndexByte(full, '/'); isBin(full[:i]) && s.has(full[i+1:]) {
			return thing{name: full[i+1:]}, ""
		}
		return what, command.Reason(err)
	}
	switch {
	case info.IsDir():
		return what, "Is a directory"
	case s.FS.Access(full, 1) != nil || !info.Mode().IsRegular():
		return what, command.Reason(syscall.EACCES)
	}
	return thing{script: full, name: path}, ""
}

// findCommand looks a name without a slash up in PATH.
func (sh *shell) findCommand(name string) (string, bool) {
	if p, ok := sh.hashed[name]; ok {
		return p, true
	}
	p, ok := sh.ses.lookPath(sh.dir, name, sh.get("PATH"))
	if ok {
		if sh.hashed == nil {
			sh.hashed = map[string]string{}
		}
		sh.hashed[name] = p
	}
	return p, ok
}

func (s *session) lookPath(dir, name, path string) (string, bool) {
	if name == "" || name == "." || name == ".." {
		return "", false
	}
	for _, d := range strings.Split(path, ":") {
		if isBin(d) && s.has(name) {
			return d + "/" + name, true
		}
		full := join(dir, d)
		if d == "" {
			full, d = dir, "."
		}
		full = join(full, name)
		info, err := s.FS.Stat(full)
		if err != nil || !info.Mode().IsRegular() || s.FS.Access(full, 1) != nil {
			continue
		}
		return strings.TrimSuffix(d, "/") + "/" + name, true
	}
	return "", false
}

// exec is command.Session.Exec.
func (s *session) exec(ctx context.Context, c *command.Call) int {
	name, path := c.Args[0], c.Args[0]
	if strings.IndexByte(name, '/') < 0 {
		found, ok := s.lookPath(c.Dir, name, c.Getenv("PATH"))
		if !ok {
			fmt.Fprintf(c.Stderr, "%s: command not found\n", name)
			return 127
		}
		path = found
	}
	what, why := s.at(c.Dir, path)
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
			s.tooDeep(most)
			return 126
		}
		ctx = context.WithValue(ctx, inheritedKey{}, &d)
	}
	if s.Budget.Command() != nil {
		return 126
	}
	return s.perform(ctx, c, what)
}

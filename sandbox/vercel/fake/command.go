package fake

import (
	"context"
	"net/http"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/internal/output"
	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// Bounds of commands.
const (
	maxCommands   = 2048 // kept in one session; the oldest that ended goes first
	maxRunning    = 256  // at once in one session
	minCmdTimeout = 100  // ms
)

// command is a command of a session.
type command struct {
	id      string
	ses     *session
	name    string
	args    []string
	cwd     string
	started int64
	proc    *machine.Process
	out     *output.Log
	done    chan struct{} // closed when it has ended

	// Set before done is closed.
	exit     machine.Exit
	duration int64
}

// json is what the API shows of c.
func (c *command) json() *commandJSON {
	j := &commandJSON{ID: c.id, Name: c.name, Args: c.args, Cwd: c.cwd, SessionID: c.ses.id, StartedAt: c.started}
	select {
	case <-c.done:
		if !c.exit.Lost {
			j.ExitCode, j.DurationMs = ptr(c.exit.Code), ptr(c.duration)
		}
	default:
	}
	return j
}

// commandBody is the body of POST cmd.
type commandBody struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Cwd     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	Sudo    bool              `json:"sudo"`
	Timeout *int64            `json:"timeout"`
	Wait    bool              `json:"wait"`
	Logs    bool              `json:"logs"`
}

func (b *commandBody) check() error {
	switch {
	case b.Command == "":
		return reply.BadRequest("Invalid request: missing required property `command`.")
	case b.Timeout != nil && *b.Timeout < minCmdTimeout:
		return reply.BadRequest("Invalid request: `timeout` should be >= %d.", minCmdTimeout)
	case b.Logs && !b.Wait:
		return reply.BadRequest("Invalid request: `logs` needs `wait`.")
	}
	for _, a := range append([]string{b.Command, b.Cwd}, b.Args...) {
		for i := range len(a) {
			if a[i] == 0 {
				return reply.BadRequest("Invalid request: `args` should NOT contain NUL.")
			}
		}
	}
	return checkEnv(b.Env)
}

// startCommand starts what b says. It goes on when the client has gone.
func (s *Server) startCommand(ses *session, b *commandBody) (*command, error) {
	s.mu.Lock()
	running := 0
	for _, c := range ses.history {
		if c.running() {
			running++
		}
	}
	s.mu.Unlock()
	if running >= maxRunning {
		return nil, reply.NewError(http.StatusTooManyRequests, "rate_limited", "Too many commands are running in this session.")
	}
	cwd := ses.cwd
	if b.Cwd != "" {
		cwd = path.Clean(b.Cwd)
		if !path.IsAbs(cwd) {
			cwd = path.Join(ses.cwd, cwd)
		}
	}
	p, err := ses.m.Exec(s.ctx, machine.Command{
		Argv: append([]string{b.Command}, b.Args...), Dir: cwd, Env: ses.environment(b.Env, b.Sudo, cwd), Root: b.Sudo,
	})
	if err != nil {
		return nil, err
	}
	c := &command{
		id: commandID(), ses: ses, name: b.Command, args: append([]string{}, b.Args...), cwd: cwd, started: nowMs(), proc: p,
		done: make(chan struct{}),
	}
	c.out = output.New(s.path(c.id))
	s.mu.Lock()
	ses.commands[c.id] = c
	ses.history = append(ses.history, c)
	s.forgetCommands(ses)
	entered := s.enterLocked()
	s.mu.Unlock()
	if !entered {
		closeFiles([]*os.File{p.Stdout, p.Stderr})
		return nil, errSandboxStopped
	}
	go func() {
		defer s.wg.Done()
		c.run(s.ctx, b.Timeout)
	}()
	return c, nil
}

func (c *command) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// forgetCommands drops the oldest commands that have ended. s.mu is held.
func (s *Server) forgetCommands(ses *session) {
	for i := 0; len(ses.history) > maxCommands && i < len(ses.history); {
		c := ses.history[i]
		if c.running() {
			i++
			continue
		}
		c.out.Release()
		delete(ses.commands, c.id)
		ses.history = append(ses.history[:i:i], ses.history[i+1:]...)
	}
}

// environment is a command's: the machine's, the sandbox's, its own.
func (ses *session) environment(own map[string]string, sudo bool, cwd string) []string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": ses.user.Home, "USER": ses.user.Name, "LOGNAME": ses.user.Name, "SHELL": "/bin/bash", "LANG": "C.UTF-8", "PWD": cwd,
	}
	for _, m := range []map[string]string{firewall.TrustVariables(machine.Shared), ses.env, own} {
		for k, v := range m {
			env[k] = v
		}
	}
	if sudo {
		env["HOME"], env["USER"], env["LOGNAME"] = "/root", "root", "root"
	}
	var out []string
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// run reads what the command writes until it has ended.
func (c *command) run(ctx context.Context, timeoutMs *int64) {
	files := []*os.File{c.proc.Stdout, c.proc.Stderr}
	var whole, pumps sync.WaitGroup // all that the command wrote was read; no process holds the pipes
	for i, f := range files {
		whole.Add(1)
		p := output.Pump{File: f, Stream: []byte{output.Stdout, output.Stderr}[i], Log: c.out, Whole: sync.OnceFunc(whole.Done)}
		pumps.Go(p.Run)
	}
	if timeoutMs != nil {
		t := time.AfterFunc(time.Duration(*timeoutMs)*time.Millisecond, func() {
			_ = c.proc.Signal(ctx, syscall.SIGKILL, true) // it has just ended, or its machine
		})
		defer t.Stop()
	}
	begun := time.Now()
	c.exit = <-c.proc.Exited
	c.duration = time.Since(begun).Milliseconds()
	for _, f := range files {
		_ = f.SetReadDeadline(time.Unix(1, 0)) // wakes the pump, see Pump.Run
	}
	whole.Wait()
	c.out.End()
	close(c.done)
	// What the command left behind may hold the pipes for as long as it likes: it
	// is read, so that nothing waits for a reader, and not kept.
	free := make(chan struct{})
	go func() {
		defer close(free)
		pumps.Wait()
	}()
	select {
	case <-free:
	case <-c.ses.ended:
	case <-ctx.Done():
	}
	closeFiles(files)
	<-free
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// drain waits until every command of a session whose machine has ended has
// ended, too, and reports the processor time they took. Nobody can ask for their
// output any more: it is let go.
func drain(history []*command) (cpuMs int64) {
	for _, c := range history {
		<-c.done
		cpuMs += c.exit.CPUms
		c.out.Release()
	}
	return cpuMs
}

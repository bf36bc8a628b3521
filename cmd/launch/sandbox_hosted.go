package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/internal/run/records"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
)

// only is the error of a command that a tier has no use for.
func only(tier, what string) error {
	return &sandbox.CapabilityError{
		Isolation: tier, What: "a sandbox of this tier has no " + what + ": it is the workspace itself, and what runs in it",
		Fix: "make the sandbox with --tier vercel",
	}
}

// hosted finds the sandbox of an operand at the service; what it is for is said
// where the tier has none.
func (c *boxCall) hosted(name, what string) (*vercel.Kept, error) {
	b, err := c.store.Sandbox(name)
	if errors.Is(err, records.ErrNotFound) {
		return nil, fmt.Errorf("there is no sandbox %s\nsee launch sandbox ls", name)
	}
	if err != nil {
		return nil, err
	}
	if b.Tier != tierVercel {
		return nil, only(b.Tier, what)
	}
	return c.keptAt(b)
}

// keptAt is a hosted sandbox by its record.
func (c *boxCall) keptAt(b records.Sandbox) (*vercel.Kept, error) {
	var o options
	fs := o.flags()
	fs.SetOutput(io.Discard)
	if err := fs.Parse(b.Flags); err != nil {
		return nil, fmt.Errorf("the flags of sandbox %s: %w", b.Name, err)
	}
	if b.Remote.Project != "" {
		o.hosted.project, o.hosted.team = b.Remote.Project, b.Remote.Team
	}
	client, err := c.vercelClient(&o.hosted, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &vercel.Kept{Client: client, Name: b.Name, Workdir: b.Remote.Workdir}, nil
}

// hostedTime bounds one command about a hosted sandbox that moves no files.
const hostedTime = 5 * time.Minute

func (c *boxCall) copy() error {
	from, to := c.operands[0], c.operands[1]
	name, remote, pull := strings.Cut(from, ":")
	pull = pull && records.ValidName(name) == ""
	other, there, push := strings.Cut(to, ":")
	push = push && records.ValidName(other) == ""
	if pull == push {
		return errors.New("one of the two is NAME:PATH, the other a path of this machine (write ./ before one with a colon)")
	}
	ctx, stop := interrupted()
	defer stop()
	if pull {
		k, err := c.hosted(name, "files of its own")
		if err != nil {
			return err
		}
		return k.Pull(ctx, remote, to)
	}
	k, err := c.hosted(other, "files of its own")
	if err != nil {
		return err
	}
	return k.Push(ctx, from, there)
}

func (c *boxCall) snapshot() error {
	k, err := c.hosted(c.operands[0], "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := c.bounded()
	defer stop()
	if c.opts.list {
		all, err := k.Snapshots(ctx)
		for _, s := range all {
			c.Print(fmt.Sprintf("%s  %s  %d MB\n", s.ID, s.CreatedAt.Time().Local().Format("2006-01-02 15:04:05"), int64(s.SizeBytes)/1e6))
		}
		return err
	}
	id, err := k.Snapshot(ctx)
	if err != nil {
		return err
	}
	c.Print(id + "\n")
	return c.stopped()
}

func (c *boxCall) restore() error {
	k, err := c.hosted(c.operands[0], "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := c.bounded()
	defer stop()
	if err := k.Restore(ctx, c.operands[1]); err != nil {
		return err
	}
	return c.stopped()
}

func (c *boxCall) port() error {
	k, err := c.hosted(c.operands[0], "published ports; see launch --publish")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(c.operands[1], 10, 16)
	if err != nil {
		return fmt.Errorf("%q is no port", c.operands[1])
	}
	ctx, stop := c.bounded()
	defer stop()
	at, err := k.PortURL(ctx, int(n))
	if err == nil {
		c.Print(at + "\n")
	}
	return err
}

// bounded is a context for a command that should not take long.
func (c *boxCall) bounded() (context.Context, context.CancelFunc) {
	ctx, stop := interrupted()
	ctx, cancel := context.WithTimeout(ctx, hostedTime)
	return ctx, func() { cancel(); stop() }
}

// stopped notes that a hosted sandbox was stopped, and with it what ran there.
func (c *boxCall) stopped() error {
	name := c.operands[0]
	return errors.Join(c.store.MarkAllLost(name, records.SandboxStopped),
		c.store.Update(name, func(b *records.Sandbox) { b.Status = records.Stopped }))
}

func (c *boxCall) stopHosted(b records.Sandbox) error {
	k, err := c.keptAt(b)
	if err != nil {
		return err
	}
	ctx, stop := c.bounded()
	defer stop()
	if err := c.dismiss(ctx, b.Name); err != nil {
		return err
	}
	if err := k.Stop(ctx); err != nil {
		return err
	}
	return c.stopped()
}

// dismiss ends the launchers of what runs in a hosted sandbox, so that none of
// them boots it again. What they ran is lost.
func (c *boxCall) dismiss(ctx context.Context, name string) error {
	all, err := c.store.Processes(name)
	if err != nil {
		return err
	}
	if err := c.store.MarkAllLost(name, records.SandboxStopped); err != nil {
		return err
	}
	for _, p := range all {
		pid := p.Metadata.Launcher
		if p.Over() || pid <= 1 {
			continue
		}
		launcher, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		tick := time.NewTicker(50 * time.Millisecond)
		for n := 0; ctx.Err() == nil && c.store.HasRecorder(name, p.ID); n++ {
			switch n {
			case 0, 40: // asked once more after two seconds
				_ = launcher.Signal(syscall.SIGTERM)
			case 200:
				_ = launcher.Kill()
			}
			<-tick.C
		}
		tick.Stop()
	}
	return ctx.Err()
}

func (c *boxCall) deleteHosted(b records.Sandbox) error {
	all, err := c.store.Processes(b.Name)
	for _, p := range all {
		if !p.Over() {
			return fmt.Errorf("process %s is running: stop the sandbox first, or use -f", p.ID)
		}
	}
	if err != nil {
		return err
	}
	k, err := c.keptAt(b)
	if err != nil {
		return err
	}
	ctx, stop := c.bounded()
	defer stop()
	return k.Delete(ctx)
}

// remoteProcess is what a process is called at the service.
func remoteProcess(p records.Process) (session, command string, ok bool) {
	c := p.Metadata.Remote
	return c.Session, c.ID, c.Known()
}

// killRemote ends a program in a hosted sandbox: it is asked to, and killed when
// it does not.
func (c *boxCall) killRemote(p records.Process) error {
	session, command, ok := remoteProcess(p)
	if !ok {
		return fmt.Errorf("process %s does not say where it runs", p.ID)
	}
	k, err := c.hosted(p.Sandbox, "processes elsewhere")
	if err != nil {
		return err
	}
	ctx, stop := c.bounded()
	defer stop()
	if _, err := c.store.MarkStopping(p.Sandbox, p.ID); err != nil {
		return err
	}
	reattached := c.attach(ctx, p)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if _, err := k.Client.Kill(ctx, session, command, sig); err != nil && !gone(err) {
			return err
		}
		if _, err = c.store.Wait(ctx, p.Sandbox, p.ID, killGrace); err == nil {
			stop()
			return reattached()
		}
	}
	return fmt.Errorf("process %s does not end", p.ID)
}

func gone(err error) bool { return api.IsGone(err) || errors.Is(err, fs.ErrNotExist) }

// attach goes on recording a process in a hosted sandbox whose launcher is gone,
// until ctx ends or the process does. The function that it reports waits for
// that and says what went wrong.
func (c *boxCall) attach(ctx context.Context, p records.Process) (wait func() error) {
	nothing := func() error { return nil }
	session, command, ok := remoteProcess(p)
	if !ok || p.Over() {
		return nothing
	}
	rec, err := c.store.Attach(p.Sandbox, p.ID)
	if err != nil {
		return nothing // its launcher lives, or another one attached
	}
	k, err := c.hosted(p.Sandbox, "processes elsewhere")
	if err != nil {
		return func() error { return errors.Join(err, rec.Detach()) }
	}
	done := make(chan error, 1)
	go func() { done <- c.goOn(ctx, k, rec, session, command) }()
	return func() error { return <-done }
}

// askTime bounds a look at a process elsewhere.
const askTime = 15 * time.Second

// askAbout finds out what became of processes in hosted sandboxes whose
// launchers are gone. Where the service cannot be asked they stay as they are.
func (c *boxCall) askAbout(all []records.Process) []records.Process {
	ctx, done := context.WithTimeout(context.Background(), askTime)
	defer done()
	for i, p := range all {
		session, command, ok := remoteProcess(p)
		if !ok || p.Over() || c.store.HasRecorder(p.Sandbox, p.ID) {
			continue
		}
		k, err := c.hosted(p.Sandbox, "processes elsewhere")
		if err == nil {
			var now *api.Command
			if now, err = k.Client.Command(ctx, session, command); gone(err) || err == nil && now.Exited() {
				err = c.attach(ctx, p)()
			}
		}
		if err != nil {
			c.Say("launch: what became of process %s is not known: %v\n", p.ID, err)
			return all
		}
		if now, err := c.store.Process(p.Sandbox, p.ID); err == nil {
			all[i] = now
		}
	}
	return all
}

func (c *boxCall) goOn(ctx context.Context, k *vercel.Kept, rec *records.Recorder, session, command string) error {
	told := map[string]int64{}
	// Nobody else prolongs the session of a program whose launcher is gone.
	alive := vercel.Alive(ctx, k.Client, session, time.Now(), nil)
	defer alive()
	ended, err := k.Client.Attach(ctx, session, command, func(stream string, data []byte) error {
		from := told[stream]
		told[stream] += int64(len(data))
		if skip := rec.Offset(stream) - from; skip > 0 { // recorded already
			data = data[min(skip, int64(len(data))):]
		}
		rec.Write(stream, data)
		return nil
	})
	p := rec.Process()
	switch {
	case gone(err):
		if err := rec.Detach(); err != nil {
			return err
		}
		_, err := c.store.MarkLost(p.Sandbox, p.ID, records.SandboxStopped)
		return err
	case ctx.Err() != nil:
		return rec.Detach()
	case err != nil:
		return errors.Join(err, rec.Detach())
	}
	code := int(*ended.ExitCode)
	return rec.Finish("", &code, "")
}

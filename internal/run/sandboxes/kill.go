package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"egressd/internal/run/records"
)

// killGrace is how long a process has to end after each signal.
const killGrace = 10 * time.Second

// Kill ends one process. One that is over is not an error.
func (s *Set) Kill(sandbox, id string) error {
	p, err := s.process(sandbox, id)
	if err != nil || p.Over() {
		return err
	}
	if p.Metadata.Remote != (records.RemoteCommand{}) {
		return s.killRemote(p)
	}
	return s.end([]records.Process{p})
}

// end ends processes of this machine by signals to their launchers: the first is
// the program's, the second ends everything in the sandbox, the third kills the
// launcher, and with it the kernel kills what it ran.
func (s *Set) end(running []records.Process) error {
	ctx, stop := interrupted()
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		for _, p := range running {
			if err := s.signal(p, sig); err != nil {
				return err
			}
		}
		var left []records.Process
		deadline := time.Now().Add(killGrace)
		for _, p := range running {
			if _, err := s.store.Wait(ctx, p.Sandbox, p.ID, max(time.Until(deadline), time.Millisecond)); err != nil {
				left = append(left, p)
			}
		}
		if running = left; len(running) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("process %s does not end", running[0].ID)
}

// signal sends a signal to the launcher of a process.
func (s *Set) signal(p records.Process, sig syscall.Signal) error {
	now, err := s.store.MarkStopping(p.Sandbox, p.ID)
	if err != nil || now.Over() {
		return err
	}
	launcher, err := s.launcherOf(now)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %s: %w", p.ID, err)
	}
	defer launcher.Release() //nolint:errcheck // a descriptor
	if err := launcher.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %s: %w", p.ID, err)
	}
	return nil
}

// launcherOf finds the launch that started a process. The error is os.ErrProcessDone
// if it is gone.
//
// Threat: a record names another process of the person, by a planted number or
// because the number was given away again, and launch kills that -> the number counts
// only with launch's seal and the start time that belongs to it; it is looked at
// after the process is held by a descriptor (pidfd), which never means another one.
func (s *Set) launcherOf(p records.Process) (*os.Process, error) {
	if p.Metadata.Launcher <= 1 {
		return nil, errors.New("the record does not name its launcher")
	}
	if err := s.store.TrustedLauncher(p); err != nil {
		return nil, fmt.Errorf("%w: its launcher would be process %d: look at that, and end it by hand", err, p.Metadata.Launcher)
	}
	launcher, err := os.FindProcess(p.Metadata.Launcher)
	if err != nil {
		return nil, err
	}
	if started, err := records.StartedAt(p.Metadata.Launcher); err != nil || started != p.Metadata.Started {
		_ = launcher.Release()
		return nil, os.ErrProcessDone // another one has its number by now
	}
	return launcher, nil
}

// dismiss ends the launchers of what runs in a hosted sandbox, so that none of them
// starts it again. What they ran is lost.
func (s *Set) dismiss(ctx context.Context, sandbox string) error {
	all, err := s.store.Processes(sandbox)
	if err != nil {
		return err
	}
	if err := s.store.MarkAllLost(sandbox, records.SandboxStopped); err != nil {
		return err
	}
	for _, p := range all {
		if launcher, err := s.launcherOf(p); err == nil && !p.Over() {
			s.dismissOne(ctx, p, launcher)
		}
	}
	return ctx.Err()
}

// dismissOne asks a launcher to end, asks again after two seconds, and kills it
// after ten.
func (s *Set) dismissOne(ctx context.Context, p records.Process, launcher *os.Process) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil && s.store.HasRecorder(p.Sandbox, p.ID); n++ {
		switch n {
		case 0, 40:
			_ = launcher.Signal(syscall.SIGTERM)
		case 200:
			_ = launcher.Kill()
		}
		<-tick.C
	}
}

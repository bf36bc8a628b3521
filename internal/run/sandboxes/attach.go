package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"egressd/internal/run/records"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
)

// refreshTime bounds how long the service is asked about remote processes.
const refreshTime = 15 * time.Second

// processesElsewhere is what another tier lacks, for hosted.
const processesElsewhere = "processes elsewhere"

// gone reports whether the service no longer knows what it was asked about.
func gone(err error) bool { return api.IsGone(err) || errors.Is(err, fs.ErrNotExist) }

// killRemote ends a program in a hosted sandbox: SIGTERM, then SIGKILL.
func (s *Set) killRemote(p records.Process) error {
	at := p.Metadata.Remote
	if !at.Known() {
		return fmt.Errorf("the record of process %s does not say where it runs", p.ID)
	}
	k, err := s.hosted(p.Sandbox, processesElsewhere)
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	if _, err := s.store.MarkStopping(p.Sandbox, p.ID); err != nil {
		return err
	}
	detach := s.attach(ctx, p)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if _, err := k.Client.Kill(ctx, at.Session, at.ID, sig); err != nil && !gone(err) {
			return err
		}
		if _, err = s.store.Wait(ctx, p.Sandbox, p.ID, killGrace); err == nil {
			stop()
			return detach()
		}
	}
	return fmt.Errorf("process %s does not end", p.ID)
}

// refresh finds out what became of remote processes whose launchers are gone. If
// the service cannot be asked they stay as they are, and that is said.
func (s *Set) refresh(all []records.Process) []records.Process {
	ctx, done := context.WithTimeout(context.Background(), refreshTime)
	defer done()
	for i, p := range all {
		at := p.Metadata.Remote
		if !at.Known() || p.Over() || s.store.HasRecorder(p.Sandbox, p.ID) {
			continue
		}
		k, err := s.hosted(p.Sandbox, processesElsewhere)
		if err == nil {
			var now *api.Command
			if now, err = k.Client.Command(ctx, at.Session, at.ID); gone(err) || err == nil && now.Exited() {
				err = s.attach(ctx, p)()
			}
		}
		if err != nil {
			s.Say("launch: what became of process %s is not known: %v\n", p.ID, err)
			return all
		}
		if now, err := s.store.Process(p.Sandbox, p.ID); err == nil {
			all[i] = now
		}
	}
	return all
}

// attach continues the recording of a remote process whose launcher is gone, until
// ctx ends or the process does. Of any other process it does nothing. The caller
// calls detach, which waits for the end of the recording and reports its error.
func (s *Set) attach(ctx context.Context, p records.Process) (detach func() error) {
	nothing := func() error { return nil }
	if !p.Metadata.Remote.Known() || p.Over() {
		return nothing
	}
	rec, err := s.store.Attach(p.Sandbox, p.ID)
	if err != nil {
		return nothing // its launcher lives, or another one attached
	}
	k, err := s.hosted(p.Sandbox, processesElsewhere)
	if err != nil {
		return func() error { return errors.Join(err, rec.Detach()) }
	}
	done := make(chan error, 1)
	go func() { done <- s.follow(ctx, k, rec) }()
	return func() error { return <-done }
}

// attachAgain is how long keepAttached waits before it tries again.
const attachAgain = 500 * time.Millisecond

// keepAttached is attach for who waits for the end of a process: while nobody records
// it, because its launcher has died only now or the service broke off, it is attached
// again, until ctx ends. detach reports the last error, if the process is not over.
func (s *Set) keepAttached(ctx context.Context, p records.Process) (detach func() error) {
	if !p.Metadata.Remote.Known() || p.Over() {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		var last error
		for ctx.Err() == nil {
			if err := s.attach(ctx, p)(); err != nil {
				last = err
			}
			if now, err := s.store.Process(p.Sandbox, p.ID); err != nil || now.Over() {
				last = nil
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(attachAgain):
			}
		}
		done <- last
	}()
	return func() error { return <-done }
}

// follow records what the service replays of a process, from where the record ends,
// and then what it prints.
func (s *Set) follow(ctx context.Context, k *vercel.Kept, rec *records.Recorder) error {
	p := rec.Process()
	at := p.Metadata.Remote
	replayed := map[string]int64{}
	// Nobody else prolongs the session of a program whose launcher is gone.
	alive := vercel.Alive(ctx, k.Client, at.Session, time.Now(), nil)
	defer alive()
	ended, err := k.Client.Attach(ctx, at.Session, at.ID, func(stream string, data []byte) error {
		from := replayed[stream]
		replayed[stream] += int64(len(data))
		if skip := rec.Offset(stream) - from; skip > 0 { // recorded already
			data = data[min(skip, int64(len(data))):]
		}
		rec.Write(stream, data)
		return nil
	})
	switch {
	case gone(err):
		if err := rec.Detach(); err != nil {
			return err
		}
		_, err := s.store.MarkLost(p.Sandbox, p.ID, records.SandboxStopped)
		return err
	case ctx.Err() != nil:
		return rec.Detach()
	case err != nil:
		return errors.Join(err, rec.Detach())
	}
	code := int(*ended.ExitCode)
	return rec.Finish("", &code, "")
}

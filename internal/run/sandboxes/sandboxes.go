// Package sandboxes looks after named sandboxes: it is what launch sandbox does,
// with launch's records and, for the Vercel tier, with the service.
//
//	set, err := sandboxes.Open(launcher)
//	defer set.Close()
//	err = set.List(false)
//	code, err := set.Exec("dev", []string{"make"}, sandboxes.ExecOptions{})
//
// Methods print their answers on the standard output. An error is for the caller
// to print: it names what to type next.
package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"egressd/internal/run"
	"egressd/internal/run/microvm"
	"egressd/internal/run/records"
	"egressd/sandbox/vercel"
)

// Set is all sandboxes of launch's records. Its methods are for one command of a
// person; it is not safe for concurrent use.
type Set struct {
	*run.Launcher
	store *records.Store
}

// Open opens the records. The caller closes the Set.
func Open(l *run.Launcher) (*Set, error) {
	store, err := l.Records()
	if err != nil {
		return nil, err
	}
	return &Set{Launcher: l, store: store}, nil
}

// Close closes the records.
func (s *Set) Close() error { return s.store.Close() }

// Stop ends all that runs in a sandbox.
func (s *Set) Stop(name string) error {
	b, err := s.sandbox(name)
	if err != nil {
		return err
	}
	if b.Tier == microvm.Tier {
		return s.stopHosted(b)
	}
	all, err := s.store.Processes(name)
	if err != nil {
		return err
	}
	var running []records.Process
	for _, p := range all {
		if !p.Over() {
			running = append(running, p)
		}
	}
	if err := s.end(running); err != nil {
		return err
	}
	return s.store.Update(name, func(b *records.Sandbox) { b.Status = records.Stopped })
}

// Remove forgets a sandbox in which nothing runs, or stops it first.
func (s *Set) Remove(name string, stopFirst bool) error {
	if stopFirst {
		foreign := (*vercel.ForeignError)(nil) // only the record here is removed
		if err := s.Stop(name); err != nil && !errors.As(err, &foreign) {
			return err
		}
	}
	b, err := s.sandbox(name)
	if err != nil {
		return err
	}
	if b.Tier == microvm.Tier {
		if err := s.deleteHosted(b); err != nil {
			return err
		}
	}
	return s.store.Remove(name)
}

// sandbox finds the record of a sandbox.
func (s *Set) sandbox(name string) (records.Sandbox, error) {
	b, err := s.store.Sandbox(name)
	if errors.Is(err, records.ErrNotFound) {
		return b, fmt.Errorf("there is no sandbox %s\nsee launch sandbox ls", name)
	}
	return b, err
}

// process finds the record of a process; that of the last one started if id is "".
func (s *Set) process(sandbox, id string) (records.Process, error) {
	if _, err := s.sandbox(sandbox); err != nil {
		return records.Process{}, err
	}
	if id != "" {
		p, err := s.store.Process(sandbox, id)
		if errors.Is(err, records.ErrNotFound) {
			return p, fmt.Errorf("sandbox %s has no process %s\nsee launch sandbox ps %s", sandbox, id, sandbox)
		}
		return p, err
	}
	all, err := s.store.Processes(sandbox)
	if len(all) == 0 {
		return records.Process{}, errors.Join(fmt.Errorf("nothing has run in sandbox %s", sandbox), err)
	}
	return all[len(all)-1], nil
}

// commandLine is what was run, for people.
func commandLine(p records.Process) string {
	return strings.Join(append([]string{p.Command}, p.Args...), " ")
}

// interrupted reports a context that ends with a signal that asks this process to
// end.
func interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

package hermetic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/event"
	"egressd/sandbox"
	"egressd/sandbox/hermetic/control"
)

// conclude gives the end of the worker its exit code and its reason.
func (r *running) conclude() error {
	if f := r.failed; f != nil {
		return setUpError(f.Step, f.Err, f.Errno)
	}
	if r.ended != nil {
		r.res.ExitCode = r.ended.Code & 0xff
		if r.b.Overlay {
			r.tellChanges()
		}
	}
	switch {
	case r.res.TimedOut:
		r.res.ExitCode = sandbox.ExitTimeout
	case r.signal != 0:
		r.res.ExitCode = sandbox.ExitSignal + int(r.signal)
	case r.ended != nil:
		if r.ended.Limit != "" {
			r.note(r.ended.Limit)
		}
	case r.killed:
		r.res.ExitCode = sandbox.ExitSignal + int(syscall.SIGKILL)
	default:
		r.crashed()
	}
	return nil
}

// tellChanges records what the overlay held, and tells who wants to know.
func (r *running) tellChanges() {
	if r.ended.Total < 0 {
		return // they are not known, which is not that there are none
	}
	kinds := map[byte]event.Change{'A': event.Added, 'M': event.Modified, 'D': event.Deleted}
	list := make([]Change, 0, len(r.ended.Changes))
	for _, c := range r.ended.Changes {
		if kinds[c.Kind] == 0 || c.Path == "" || len(list) == control.MaxChanges {
			continue // no worker of ours says that
		}
		list = append(list, Change{Kind: c.Kind, Path: c.Path})
		r.b.record(&event.FileChanged{Path: c.Path, Change: kinds[c.Kind]})
	}
	if r.b.Changed != nil {
		r.b.Changed(list, max(r.ended.Total, len(list)))
	}
}

// record writes body as one of this run's events.
func (b *Backend) record(body event.Body) {
	if b.Gate.Events == nil {
		return
	}
	e := event.Event{Session: b.Gate.Session, Isolation: isolation, Body: body}
	if b.Gate.Policy != nil {
		e.Policy = b.Gate.Policy.Load().Digest()
	}
	if err := b.Gate.Events.Emit(e); err != nil {
		b.log().Error("a change was not recorded", slog.Any("error", err))
	}
}

// note tells the person.
func (r *running) note(line string) {
	if r.spec.Notes != nil {
		r.spec.Notes(line)
	}
}

// crashText bounds what is read of a crash.
const crashText = 64 << 10

// crashes are the ways a worker can end without a word, by what the Go runtime
// says of them.
var crashes = []struct{ says, means string }{
	{"stack overflow", "limit: the script nests too deep for the interpreter's stack; it was ended"},
	{"out of memory", "limit: more memory was needed than there is; if the script is right, raise it: --limit memory=N"},
	{"cannot allocate memory", "limit: more memory was needed than there is; if the script is right, raise it: --limit memory=N"},
	{"cannot map pages", "limit: more memory was needed than there is; if the script is right, raise it: --limit memory=N"},
	{"thread exhaustion", "limit: more threads were needed than there are; it was ended"},
}

// crashed says how a worker ended that did not say it itself. It is a result of
// the script, not of the launcher.
func (r *running) crashed() {
	text, _ := io.ReadAll(io.LimitReader(io.NewSectionReader(r.worker.crash, 0, crashText), crashText))
	if r.b.Trace != nil {
		_, _ = r.b.Trace.Write(text)
	}
	st := r.worker.status
	if st.Signaled() {
		r.res.ExitCode = sandbox.ExitSignal + int(st.Signal())
		switch st.Signal() {
		case syscall.SIGXCPU:
			r.res.ExitCode = exitLimit
			r.note("limit: the script used up its processor time; it was ended")
		case syscall.SIGSYS:
			r.note("the interpreter made a system call that it may not make and was ended: this is a bug or an attack")
		case syscall.SIGKILL:
			r.note("the interpreter was killed, perhaps because the machine ran out of memory")
		default:
			r.note(fmt.Sprintf("the interpreter was ended by signal %d (%s)", int(st.Signal()), unix.SignalName(st.Signal())))
		}
		return
	}
	r.res.ExitCode = exitLimit
	for _, c := range crashes {
		if bytes.Contains(text, []byte(c.says)) {
			r.note(c.means)
			return
		}
	}
	r.note("the interpreter crashed: this is a bug of launch, please report it (LAUNCH_TRACE=1 shows where)")
}

// setUpError turns the worker's report into what to tell the person.
func setUpError(step, what string, errno syscall.Errno) error {
	text := fmt.Sprintf("the worker could not be confined at %s: %s", step, what)
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL:
		return &sandbox.CapabilityError{Isolation: isolation, What: text, Fix: "see launch doctor"}
	}
	return errors.New(text)
}

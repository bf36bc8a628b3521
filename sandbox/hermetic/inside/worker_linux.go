package inside

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"

	"egressd/hermetic"
	"egressd/hermetic/command"
	"egressd/sandbox/hermetic/control"
)

// Exit codes of the process. What became of the script is in the report; a
// worker that made none has crashed.
const (
	reported = 0
	silent   = 125
)

// worker is this process.
type worker struct {
	ctl    *control.Conn
	bounds control.Bounds
	start  control.Start
	dials  dialTable
	more   command.Table
	ttys   [3]bool // which standard streams are terminals
}

// Run is the main function of a worker, whose scripts can call the commands of
// more besides the tier's own. It returns when the script has ended, or when the
// launcher is gone.
func Run(more command.Table) int {
	w := &worker{ctl: control.WorkerConn(control.FD), more: more}
	return w.run()
}

func (w *worker) run() int {
	step, err := w.prepare()
	if err != nil {
		r := control.FailReport{Step: step, Err: err.Error()}
		errors.As(err, &r.Errno)
		w.ctl.Send(control.Message{Failed: &r}) //nolint:errcheck // the launcher is gone then
		return silent
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.listen(cancel)
	report := w.execute(ctx)
	if w.ctl.Send(control.Message{Ended: &report}) != nil {
		return silent
	}
	return reported
}

// prepare confines this process, and only then reads what is to be run. step says
// what failed.
func (w *worker) prepare() (step string, err error) {
	m, err := w.receive()
	if err != nil || m.Bounds == nil {
		return "start", errors.Join(err, io.ErrUnexpectedEOF)
	}
	w.bounds = *m.Bounds
	w.ttys = terminals() // the system-call filter refuses to ask
	if step, err := w.confine(); err != nil {
		return step, err
	}
	m, err = w.receive()
	if err != nil || m.Start == nil {
		return "script", errors.Join(err, io.ErrUnexpectedEOF)
	}
	w.start = *m.Start
	return "", nil
}

// terminals reports which of the script's standard streams are terminals.
func terminals() (is [3]bool) {
	for n, fd := range []int{unix.Stdin, unix.Stdout, control.StderrFD} {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		is[n] = err == nil
	}
	return is
}

func (w *worker) receive() (control.Message, error) {
	m, fd, err := w.ctl.Receive()
	if fd != nil {
		fd.Close()
	}
	return m, err
}

// listen obeys the launcher until it is gone; then nothing is left to do here.
func (w *worker) listen(stop context.CancelFunc) {
	defer stop()
	defer w.dials.close()
	for {
		m, fd, err := w.ctl.Receive()
		switch {
		case err != nil:
			return
		case m.Dialled != nil:
			w.dials.deliver(*m.Dialled, fd)
		case m.Stop != nil:
			stop()
		}
	}
}

// execute runs the script.
func (w *worker) execute(ctx context.Context) control.EndReport {
	session := w.session()
	debug.SetMemoryLimit(session.Limits.WithDefaults().Memory)
	result, err := session.Run(ctx, hermetic.Script{
		Text: w.start.Script, Name: w.start.Name, Args: w.start.Args, Options: w.start.Options,
	})
	return w.report(result, err)
}

func (w *worker) session() *hermetic.Session {
	s := &hermetic.Session{
		Files: hermetic.Files{Dir: ".", Overlay: w.start.Overlay, Protect: w.start.Protect},
		Dir:   w.start.Dir, Env: w.start.Env, Limits: w.start.Limits,
		Stdin: os.Stdin, Stdout: outputFile(unix.Stdout), Stderr: outputFile(control.StderrFD), Terminals: w.ttys,
		Commands: w.more,
	}
	if w.start.Network {
		s.Dial, s.Roots = w.dial, w.start.Roots
	}
	return s
}

// report says how it ended, and what the overlay holds.
func (w *worker) report(result hermetic.Result, err error) control.EndReport {
	r := control.EndReport{Code: result.Code, Total: len(result.Changes)}
	if err != nil {
		r.Limit = err.Error()
	}
	if result.Unlisted != nil {
		r.Limit, r.Total = "the changes can't be listed: "+command.Reason(result.Unlisted), -1
		return r
	}
	size := 0
	for _, c := range result.Changes[:min(len(result.Changes), control.MaxChanges)] {
		if size += len(c.Path); size > control.MaxChangeBytes {
			break
		}
		r.Changes = append(r.Changes, control.Change{Kind: c.Kind, Path: c.Path})
	}
	return r
}

func (w *worker) skips(layer string) bool { return slices.Contains(w.bounds.Skip, layer) }

package inside

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/shell"
	"egressd/hermetic/vfs"
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
	ctl   *control.Conn
	walls control.Walls
	start control.Start
	dials dialTable
	more  command.Table
	ttys  [3]bool // which standard streams are terminals
}

// Run is the main function of a worker, whose scripts can call the commands of
// more besides the tier's own. It returns when the script has ended, or when the
// launcher is gone.
func Run(more command.Table) int {
	w := &worker{ctl: &control.Conn{FD: control.FD, Worker: true}, more: more}
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

// prepare builds the walls, and only then reads what is to be run. step is what
// it was at.
func (w *worker) prepare() (step string, err error) {
	m, err := w.receive()
	if err != nil || m.Walls == nil {
		return "start", errors.Join(err, io.ErrUnexpectedEOF)
	}
	w.walls = *m.Walls
	w.ttys = terminals() // the walls refuse to look
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

// terminals looks which of the script's standard streams are terminals.
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
	ctx, budget, stop := limits.New(ctx, w.start.Limits)
	defer stop()
	fs, err := vfs.Open(vfs.Config{
		Dir: ".", Overlay: w.start.Overlay, Written: budget.Written,
		Memory: budget.Limits.Memory / 2, Protect: w.start.Protect,
	})
	if err != nil {
		return control.EndReport{Code: silent, Limit: "the workspace can't be opened: " + command.Reason(err)}
	}
	defer fs.Close()
	table, err := commands(w.start.Network, w.more)
	if err != nil {
		return control.EndReport{Code: silent, Limit: err.Error()}
	}
	debug.SetMemoryLimit(budget.Limits.Memory)
	out := newOutput(budget, stop)
	go watchMemory(ctx, budget)
	code, err := shell.Run(ctx, shell.Config{
		Name: w.start.Name, Args: w.start.Args, Options: w.start.Options, Dir: w.start.Dir, Env: w.start.Env,
		Stdin: os.Stdin, Stdout: out.file(unix.Stdout), Stderr: out.file(control.StderrFD),
		Terminals: w.ttys, Commands: table, Session: w.session(fs, budget),
	}, w.start.Script)
	return w.report(fs, budget, out, code, err)
}

func (w *worker) session(fs *vfs.FS, budget *limits.Budget) *command.Session {
	s := &command.Session{FS: fs, Budget: budget, Now: time.Now}
	if w.start.Network {
		s.Proxy, s.Roots = w.dial, w.start.Roots
	}
	return s
}

// report says how it ended, and what the overlay holds.
func (w *worker) report(fs *vfs.FS, budget *limits.Budget, out *output, code int, err error) control.EndReport {
	r := control.EndReport{Code: code & 0xff}
	switch cause := budget.Cause(); {
	case cause != nil:
		r.Code, r.Limit = exitLimit, cause.Error()
	case out.broken():
		r.Code = exitPipe
	case err != nil:
		r.Code, r.Limit = silent, err.Error()
	}
	if !w.start.Overlay {
		return r
	}
	changes, err := fs.Changes()
	if err != nil {
		r.Limit, r.Total = "the changes can't be listed: "+command.Reason(err), -1
		return r
	}
	r.Total = len(changes)
	size := 0
	for _, c := range changes[:min(len(changes), control.MaxChanges)] {
		if size += len(c.Path); size > control.MaxChangeBytes {
			break
		}
		r.Changes = append(r.Changes, control.Change{Kind: c.Kind, Path: c.Path})
	}
	return r
}

// Exit codes of a script that was ended.
const (
	exitLimit = 126
	exitPipe  = 128 + int(unix.SIGPIPE)
)

func (w *worker) skips(wall string) bool { return slices.Contains(w.walls.Skip, wall) }

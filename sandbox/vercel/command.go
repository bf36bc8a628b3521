package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"egressd/sandbox/vercel/api"
)

// defaultGrace is the time between asking a program to end and killing it.
const defaultGrace = 5 * time.Second

// command runs the program and waits for its end, and then for that of what passes
// its standard input on, which may be nil.
//
// Threat: a secret on a command line is kept in the service's records and shown
// by ps -> variables travel in the request's env, never in arguments; secrets
// that the policy binds to a host do not travel into the VM at all.
func (r *run) command(ctx context.Context, in *input) error {
	argv, err := commandLine(r.spec)
	if err != nil {
		return err
	}
	start, err := r.start(ctx)
	if err != nil {
		return err
	}
	request := api.CommandRequest{Command: argv[0], Args: argv[1:], Cwd: start, Env: environment(r.spec.Env)}
	request.Env[markVariable] = r.mark
	if in != nil {
		request.Command, request.Args = "sh", append([]string{"-c", `exec "$@" <"$0"`, in.name}, argv...)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer in.stop() //nolint:errcheck // of a program that did not end by itself
	defer in.losing(cancel)()
	w := r.watch(inner, cancel)
	ended, err := r.Client.Run(inner, r.session.id, request, w.begun, r.output)
	w.stop()
	r.program = w.id
	if err == nil {
		if e := in.stop(); e != nil {
			return e
		}
	}
	lost := in.why()
	var refused *api.Error
	switch {
	case w.timedOut:
		r.session.loose = true
		r.res.TimedOut, r.res.ExitCode = true, exitTimeout
		return nil
	case errors.As(err, &refused) && refused.Code == api.CodeExecutableNotFound:
		r.res.ExitCode = exitNotFound
		return fmt.Errorf("%s: not found in the sandbox", argv[0])
	case err != nil && lost != nil && r.signals.caught() == 0 && !api.IsGone(lost):
		r.end(ctx)
		return lost
	case errors.Is(err, syscall.EPIPE):
		r.end(ctx)
		r.res.ExitCode = exitSignal + int(syscall.SIGPIPE) // the reader has gone
		return nil
	case r.signals.caught() != 0 && err != nil:
		r.session.loose = true
		return nil // the exit code follows from the signal
	case api.IsGone(err) || err != nil && api.IsGone(lost):
		r.session.gone = true
		return fmt.Errorf("the sandbox ended while the program ran, and what it changed is lost: %w", cmp.Or(lost, err))
	case err != nil:
		r.end(ctx)
		return err
	}
	r.res.ExitCode = int(*ended.ExitCode) & 0xff
	return nil
}

// end ends a program whose output is no longer read, so that its changes can be
// brought back.
func (r *run) end(ctx context.Context) {
	r.session.loose = true
	if r.program == "" {
		return
	}
	grace := cmp.Or(r.spec.Grace, defaultGrace)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r.kill(ctx, r.program, sig)
		ctx, done := context.WithTimeout(ctx, grace)
		_, err := r.Client.Wait(ctx, r.session.id, r.program)
		done()
		if err == nil || api.IsGone(err) {
			return
		}
	}
}

func environment(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

// output passes on what the program prints.
func (r *run) output(stream string, data []byte) error {
	if stream == "stderr" {
		return write(r.spec.Stderr, data)
	}
	return write(r.spec.Stdout, data)
}

// watch watches a program while it runs: the time limit, signals, and the end of
// the session.
type watch struct {
	r        *run
	cancel   context.CancelFunc // abandons the program
	started  chan string        // the command's id
	over     chan struct{}
	done     chan struct{}
	timedOut bool   // read after stop
	id       string // the same
}

func (r *run) watch(ctx context.Context, cancel context.CancelFunc) *watch {
	w := &watch{r: r, cancel: cancel, started: make(chan string, 1), over: make(chan struct{}), done: make(chan struct{})}
	go w.loop(ctx)
	return w
}

// begun is called when the program runs.
func (w *watch) begun(c *api.Command) {
	w.r.located(c.ID, nil)
	w.started <- c.ID
}

// stop ends the watch. The program may have begun after the watch ended, when the
// run was given up: its id is taken here, or nobody would hear that what it changed
// is lost.
func (w *watch) stop() {
	close(w.over)
	<-w.done
	select {
	case w.id = <-w.started:
	default:
	}
}

func (w *watch) loop(ctx context.Context) {
	defer close(w.done)
	var limit, grace <-chan time.Time
	if t := w.r.spec.Timeout; t > 0 {
		limit = time.After(t)
	}
	for {
		select {
		case <-w.over:
			return
		case <-ctx.Done():
			w.kill(ctx, syscall.SIGKILL)
			return
		case w.id = <-w.started:
		case <-limit:
			w.timedOut, limit = true, nil
			grace = w.end(ctx, syscall.SIGTERM)
		case sig := <-w.r.signals.c:
			n := w.r.signals.note(sig)
			if grace == nil {
				grace = w.end(ctx, n)
			} else {
				w.kill(ctx, syscall.SIGKILL)
				w.cancel()
			}
		case <-grace:
			w.kill(ctx, syscall.SIGKILL)
			w.cancel()
			return
		}
	}
}

// end signals the program and returns a channel that fires when its grace is
// over.
func (w *watch) end(ctx context.Context, sig syscall.Signal) <-chan time.Time {
	if w.id == "" {
		w.cancel() // it is not known to have begun
		return nil
	}
	w.kill(ctx, sig)
	return time.After(cmp.Or(max(w.r.spec.Grace, 0), defaultGrace))
}

func (w *watch) kill(ctx context.Context, sig syscall.Signal) {
	if w.id == "" {
		// The cancelled request may be the one that starts it.
		select {
		case w.id = <-w.started:
		default:
			return
		}
	}
	w.r.kill(ctx, w.id, sig)
}

package vercel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"

	"egressd/sandbox/vercel/api"
)

// defaultGrace is the time between asking a program to end and killing it.
const defaultGrace = 5 * time.Second

// command runs the program and waits for its end.
//
// Threat: a secret on a command line is kept in the service's records and shown
// by ps -> variables travel in the request's env, never in arguments; secrets
// that the policy binds to a host do not travel into the VM at all.
func (r *run) command(ctx context.Context) error {
	argv, err := commandLine(r.spec)
	if err != nil {
		return err
	}
	request := api.CommandRequest{Command: argv[0], Args: argv[1:], Cwd: path.Join(r.workdir, r.place.dir), Env: environment(r.spec.Env)}
	if input, err := r.stdin(ctx); err != nil {
		return fmt.Errorf("standard input: %w", err)
	} else if input != "" {
		request.Command, request.Args = "sh", append([]string{"-c", `exec "$@" <"$0"`, input}, argv...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := r.watch(ctx, cancel)
	ended, err := r.Client.Run(ctx, r.session, request, w.begun, r.output)
	w.stop()
	var refused *api.Error
	switch {
	case w.timedOut:
		r.res.TimedOut, r.res.ExitCode = true, exitTimeout
		return nil
	case errors.As(err, &refused) && refused.Code == api.CodeExecutableNotFound:
		r.res.ExitCode = exitNotFound
		return fmt.Errorf("%s: not found in the sandbox", argv[0])
	case errors.Is(err, syscall.EPIPE):
		r.res.ExitCode = exitSignal + int(syscall.SIGPIPE) // nobody reads any more
		return nil
	case r.signals.caught() != 0 && (err != nil || ended.ExitCode == nil):
		return nil // the exit code follows from the signal
	case api.IsGone(err):
		r.gone = true
		return fmt.Errorf("the sandbox ended while the program ran, and what it changed is lost: %w", err)
	case err != nil:
		return err
	}
	r.res.ExitCode = int(*ended.ExitCode) & 0xff
	return nil
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

// watch looks after a program while it runs: the time limit, signals, and the
// session's own end.
type watch struct {
	r        *run
	cancel   context.CancelFunc // gives the program up
	started  chan string        // the command's id
	over     chan struct{}
	done     chan struct{}
	timedOut bool // read after stop
}

func (r *run) watch(ctx context.Context, cancel context.CancelFunc) *watch {
	w := &watch{r: r, cancel: cancel, started: make(chan string, 1), over: make(chan struct{}), done: make(chan struct{})}
	go w.loop(ctx)
	return w
}

// begun is told when the program runs.
func (w *watch) begun(c *api.Command) {
	w.r.located(c.ID, nil)
	w.started <- c.ID
}

func (w *watch) stop() {
	close(w.over)
	<-w.done
}

func (w *watch) loop(ctx context.Context) {
	defer close(w.done)
	prolonging, stop := context.WithCancel(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		w.r.prolong(prolonging)
	}()
	defer func() {
		stop()
		<-finished
	}()
	id := ""
	var limit, grace <-chan time.Time
	if t := w.r.spec.Timeout; t > 0 {
		limit = time.After(t)
	}
	for {
		select {
		case <-w.over:
			return
		case <-ctx.Done():
			w.kill(ctx, id, syscall.SIGKILL)
			return
		case id = <-w.started:
		case <-limit:
			w.timedOut, limit = true, nil
			grace = w.end(ctx, id, syscall.SIGTERM)
		case sig := <-w.r.signals.c:
			n := w.r.signals.note(sig)
			if grace == nil {
				grace = w.end(ctx, id, n)
			} else {
				w.kill(ctx, id, syscall.SIGKILL)
				w.cancel()
			}
		case <-grace:
			w.kill(ctx, id, syscall.SIGKILL)
			w.cancel()
			return
		}
	}
}

// end asks the program to end and reports when its time for that is over.
func (w *watch) end(ctx context.Context, id string, sig syscall.Signal) <-chan time.Time {
	if id == "" {
		w.cancel() // it has not begun
		return nil
	}
	w.kill(ctx, id, sig)
	grace := w.r.spec.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	return time.After(grace)
}

// killTime bounds one request to kill.
const killTime = 15 * time.Second

func (w *watch) kill(ctx context.Context, id string, sig syscall.Signal) {
	if id == "" {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer done()
	if _, err := w.r.Client.Kill(ctx, w.r.session, id, sig); err != nil && !api.IsGone(err) {
		w.r.log().Warn("the program could not be killed; its sandbox is stopped", "command", id, "error", err)
	}
}

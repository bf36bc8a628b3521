package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"egressd/event"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/inside"
)

// gate is egressd in the sandbox while a program runs. A nil gate is none.
type gate struct {
	r       *run
	out     *inside.Output
	id      string // of its command; "" until it was started
	begun   chan string
	watched chan struct{} // closed when watch has returned; nil: it was never ready
	told    bool          // that it ended by itself
	cancel  context.CancelFunc
	over    chan struct{} // closed when no more is read of it
	err     error         // why, read after over
	ended   sync.Once
	asked   chan struct{} // closed when it was asked to end
}

// fits reports why the gate cannot run in the session that was found.
func (b *Backend) fits(found *api.Instance) error {
	if b.Gate == nil {
		return nil
	}
	return b.Gate.Fits(cmp.Or(found.Session.Architecture, found.Sandbox.Architecture))
}

// startGate starts the gate that was asked for, and leads the program to it by the
// program's variables. No program starts without it.
func (r *run) startGate(ctx context.Context) (_ *gate, err error) {
	if r.Gate == nil {
		return nil, nil
	}
	program, rules, bundle := r.temporary("egressd"), r.temporary("policy.yaml"), r.temporary("ca.pem")
	text, err := r.Gate.Policy()
	if err != nil {
		return nil, err
	}
	if err := r.sendGate(ctx, program, file(rules, text)); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &gate{
		r: r, cancel: cancel, begun: make(chan string, 1), over: make(chan struct{}), asked: make(chan struct{}),
		out: inside.NewOutput(r.Events, event.Event{Session: r.Session, Isolation: r.Isolation()}),
	}
	request := api.CommandRequest{Command: program, Args: inside.Args(rules, bundle), Env: r.gateEnv()}
	go g.follow(running, request)
	ready := time.NewTimer(bootTime)
	defer ready.Stop()
	select {
	case proxy := <-g.out.Ready():
		g.id = <-g.begun // reported before anything that it prints
		if err = r.trustGate(ctx, bundle); err != nil {
			break
		}
		r.spec.Env = sandbox.ProxyEnv(r.spec.Env, proxy)
		g.watched = make(chan struct{})
		go g.watch()
		return g, nil
	case <-g.over:
		err = errors.Join(g.err, errors.New("it ended at once"))
	case <-ready.C:
		err = fmt.Errorf("it was not ready within %v", bootTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	g.stop()
	if words := g.out.Words(); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return nil, err
}

// addTrustScript adds the authorities that programs there trust already to the file $0.
const addTrustScript = `[ -z "$SSL_CERT_FILE" ] || cat -- "$SSL_CERT_FILE" >>"$0"`

// trustGate makes the program trust the gate, whose certificates are in bundle, where
// rules need it.
func (r *run) trustGate(ctx context.Context, bundle string) error {
	if !r.Gate.OpensTLS() {
		return nil
	}
	_, err := r.ours(ctx, api.CommandRequest{Command: "sh", Args: []string{"-c", addTrustScript, bundle}, Env: r.gateEnv()})
	r.spec.Env = sandbox.TrustEnv(slices.Clone(r.spec.Env), bundle)
	return err
}

// gateEnv is the gate's environment: it trusts the authorities that the program was
// given.
func (r *run) gateEnv() map[string]string {
	env := map[string]string{}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v := sandbox.EnvValue(r.spec.Env, name); v != "" {
			env[name] = v
		}
	}
	return env
}

// follow reads what the gate prints until it ends.
func (g *gate) follow(ctx context.Context, request api.CommandRequest) {
	defer close(g.over)
	ended, err := g.r.Client.Run(ctx, g.r.session.id, request, func(c *api.Command) { g.begun <- c.ID }, g.out.Write)
	if err == nil && *ended.ExitCode != 0 {
		err = fmt.Errorf("exit status %d", int(*ended.ExitCode))
	}
	g.err = err
}

// watch says that the gate has ended before its time, and sees to that it has: a
// gate whose events are not read any more lets nothing out. The program goes on.
func (g *gate) watch() {
	defer close(g.watched)
	select {
	case <-g.asked:
		return
	case <-g.over:
	}
	select {
	case <-g.asked: // both at once: stop says it
		return
	default:
	}
	g.tell()
	g.kill(syscall.SIGKILL)
}

// tell says that it ended, and why.
func (g *gate) tell() {
	g.told = true
	why := "somebody in the sandbox ended it"
	if g.err != nil {
		why = g.err.Error()
	}
	if words := g.out.Words(); words != "" {
		why += ": " + words
	}
	g.r.say("egressd in the sandbox has ended, so that programs that keep to their proxy variables reach nothing: %s", strings.TrimSpace(why))
}

// stop ends the gate, and returns when its last event was read.
func (g *gate) stop() {
	if g == nil {
		return
	}
	g.ended.Do(func() {
		close(g.asked)
		defer g.cancel()
		if g.watched != nil {
			<-g.watched
		}
		select {
		case g.id = <-g.begun: // it never became ready
		default:
		}
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if g.id == "" || api.IsGone(g.kill(sig)) {
				break
			}
			select {
			case <-g.over:
				if sig == syscall.SIGTERM && g.err != nil && g.watched != nil && !g.told { // asked to, it exits with 0
					g.tell()
				}
				return
			case <-time.After(defaultGrace):
			}
		}
		g.cancel()
		<-g.over
	})
}

func (g *gate) kill(sig syscall.Signal) error {
	if g.id == "" {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), killTime)
	defer done()
	_, err := g.r.Client.Kill(ctx, g.r.session.id, g.id, sig)
	return err
}

package handover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"egressd/event"
	"egressd/gate"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
	"egressd/proxy/ca"
)

// session is one launcher and what is served for it.
type session struct {
	server *Server
	link   *link
	peer   peer
	user   *user // of peer
	bytes  int   // of hello
	hello  *hello
	log    *slog.Logger
	events *stream
	opened time.Time

	current policy.Current // what judges

	mu   sync.Mutex     // of what follows, and serialises narrowing
	own  *policy.Policy // the launcher's, before it was narrowed; set once
	gate *gate.Gate     // nil until the session stands
}

// serveLauncher is the life of one connection of u's, until daemon ends. settled
// is called when the session stands, or never will.
func (s *Server) serveLauncher(daemon context.Context, c *net.UnixConn, u *user, settled func()) {
	defer settled()
	defer c.Close() //nolint:errcheck // everything was said
	stop := context.AfterFunc(daemon, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	one := &session{server: s, user: u, link: &link{c: c, in: c}, log: s.log(), events: newStream(AckTimeout), hello: new(hello), opened: time.Now()}
	defer one.contain()
	one.within(daemon, helloTimeout)
	if err := one.listen(); err != nil {
		one.refuse(err)
		return
	}
	if err := s.enter(one); err != nil {
		one.refuse(err)
		return
	}
	defer s.leave(one)
	if err := one.stand(daemon); err != nil {
		one.refuse(err)
		return
	}
	doors, err := one.takeDoors()
	settled()
	if err == nil {
		err = one.serve(daemon, doors)
	}
	one.ended(err)
}

// contain keeps a bug of ours, met by one launcher's words, from ending the
// daemon and with it everybody else's way out.
func (o *session) contain() {
	if p := recover(); p != nil {
		o.log.Error("a bug ended a session; please report it", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	}
}

// listen hears who the launcher is and what it wants.
func (o *session) listen() (err error) {
	if o.peer, err = peerOf(o.link.c); err != nil {
		return err
	}
	o.log = o.log.With(slog.String("peer", o.peer.String()))
	k, body, err := o.link.receive(or(o.server.Limits.HelloBytes, defaultHelloBytes))
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("the policy and secrets of one session: %w; put long lists into the daemon's policy", err)
	case err != nil:
		return err
	case k != kindHello:
		return errForeign
	}
	h, err := parseHello(body, o.server.Version)
	if err != nil {
		return err
	}
	o.hello, o.bytes = h, len(body)
	o.log = o.log.With(slog.String("session", h.Session))
	return nil
}

// within gives the launcher d for its next words; none when daemon has ended,
// so that nobody waits for one that was stopped.
func (o *session) within(daemon context.Context, d time.Duration) {
	_ = o.link.c.SetDeadline(time.Now().Add(d)) // a closed connection says so itself
	if daemon.Err() != nil {
		_ = o.link.c.SetReadDeadline(time.Unix(1, 0))
	}
}

// stand compiles and narrows the policy, makes the gate and says so.
func (o *session) stand(daemon context.Context) error {
	own, err := policy.Compile(o.hello.Documents...)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.own = own
	o.mu.Unlock()
	o.renarrow()
	if err := o.checkWishes(); err != nil {
		return err
	}
	c, answer := o.gateConfig(), ready{Version: o.server.Version, Digest: o.current.Load().Digest()}
	if hosts := o.current.Load().Intercepted(); len(hosts) > 0 {
		if c.CA, err = ca.New(hosts); err != nil {
			return err
		}
		answer.CA = c.CA.PEM()
	}
	g, err := gate.New(c)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.gate = g
	o.mu.Unlock()
	if err := o.emit(event.SessionOpened, nil); err != nil {
		return fmt.Errorf("it could not be recorded: %w", err)
	}
	o.log.Info("session opened", slog.String("digest", answer.Digest))
	o.within(daemon, setUpTimeout)
	if err := o.link.sendJSON(kindReady, answer); err != nil {
		o.log.Warn("the launcher left", slog.Any("error", err)) // takeDoors sees it, too
	}
	return nil
}

// checkWishes refuses what was asked for by name and could only fail: a person
// is told now, and not by a program inside that finds no way.
func (o *session) checkWishes() error {
	p, ceiling := o.current.Load(), o.server.ceiling()
	switch {
	case o.server.Events == nil:
		return errors.New("it keeps no record")
	case ceiling.Digest() == "":
		return fmt.Errorf("its policy %q, the ceiling of this socket, is not in force", o.server.Name)
	case o.own.Audit() && !ceiling.Audit():
		return errors.New("--audit (audit: true) would allow what its policy denies: leave it out, or have its operator set audit in the ceiling")
	}
	if len(o.hello.HostPorts) == 0 {
		return nil
	}
	host, err := policy.ParseHost(policyflags.HostInternal)
	if err != nil {
		return err // unreachable: it is ours
	}
	for _, port := range o.hello.HostPorts {
		if d := p.DecideAddrs(policy.Request{Host: host, Port: port}, p.Static(host)); !d.Allowed() {
			return fmt.Errorf("--host-port %d: its policy does not allow %s:%d (%s): its operator can add allow: [\"raw:%s:%d\"] and hosts: {%s: 127.0.0.1}",
				port, host, port, d.Reason, host, port, host)
		}
	}
	return nil
}

func (o *session) gateConfig() gate.Config {
	c := gate.Config{
		Policy: &o.current, Resolver: o.server.Resolver, Events: both{o.events, o.server.Events},
		Log:          o.log,
		Identity:     gate.Identity{Session: o.hello.Session, Isolation: o.hello.Isolation},
		Interception: gate.Interception{SecretValue: o.secretValue, RootCAs: o.server.RootCAs},
		Shared:       gate.Shared{Own: slices.Concat(o.server.Own, o.hello.Own)},
	}
	if o.hello.Asks {
		c.Ask = o.ask
	}
	return c
}

// secretValue knows the session's own secrets, and none of the daemon's.
func (o *session) secretValue(env string) (placeholder, value string, ok bool) {
	for _, s := range o.hello.Secrets {
		if s.Env == env {
			return s.Placeholder, s.Value, true
		}
	}
	return "", "", false
}

// renarrow puts the ceiling of this moment in force.
func (o *session) renarrow() (closed int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current.Store(o.own.Under(o.server.ceiling()))
	if o.gate == nil {
		return 0
	}
	return o.gate.Rejudge()
}

func (o *session) engine() *gate.Gate {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gate
}

// drain closes the doors and lets flows finish.
func (o *session) drain(ctx context.Context) error {
	if g := o.engine(); g != nil {
		return g.Drain(ctx)
	}
	return nil
}

// takeDoors waits for the sockets and says that they are served.
func (o *session) takeDoors() (gate.Doors, error) {
	k, body, files, err := o.link.receiveFiles(maxFrame)
	if err != nil {
		return gate.Doors{}, fmt.Errorf("the launcher handed over no sockets: %w", err)
	}
	defer closeFiles(files) //nolint:errcheck // copies
	var sh shape
	if err := decodeFrame(kindDoors, k, body, &sh); err != nil {
		return gate.Doors{}, err
	}
	sockets, err := arrange(sh, files)
	if err != nil {
		return gate.Doors{}, err
	}
	doors, err := sockets.Doors()
	if err != nil {
		return doors, err
	}
	if doors, err = guarded(doors, o.user.accepting, o.server.accepting); err != nil {
		return gate.Doors{}, err
	}
	if err := o.link.send(kindServing, nil); err != nil {
		return gate.Doors{}, errors.Join(err, doors.Close())
	}
	return doors, nil
}

// serve serves the doors until the launcher goes or daemon ends.
func (o *session) serve(daemon context.Context, doors gate.Doors) error {
	_ = o.link.c.SetDeadline(time.Time{}) // a launcher may stop for days: it only harms itself
	ctx, cancel := context.WithCancel(daemon)
	defer cancel()
	var wg, sending sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		defer o.contain()
		o.hear()
	})
	wg.Go(func() {
		<-ctx.Done()
		o.events.hangUp()
	})
	sending.Go(func() {
		defer cancel()
		defer o.contain()
		o.tell()
	})
	err := o.engine().Serve(ctx, doors)
	cancel() // where every door closed by itself
	last := end{Lost: o.events.close()}
	if daemon.Err() != nil {
		last.Why = "egressd is being shut down"
	}
	_ = o.link.c.SetWriteDeadline(time.Now().Add(endTimeout))
	sending.Wait()
	_ = o.link.sendJSON(kindEnd, last) // a launcher that died does not hear it
	_ = o.link.c.SetReadDeadline(time.Unix(1, 0))
	wg.Wait()
	return err
}

// hear takes the launcher's words until there are no more.
func (o *session) hear() {
	defer o.events.hangUp()
	for {
		k, body, err := o.link.receive(maxFrame)
		if err != nil {
			return
		}
		n, rest, ok := splitNumber(body)
		if !ok || len(rest) != 1 || k != kindAck && k != kindAnswer {
			o.log.Warn("the launcher said something that is no word of the protocol; its session ends")
			return
		}
		o.events.answered(n, rest[0] == 1)
	}
}

// tell sends events until the stream is closed and empty, or the launcher gone.
func (o *session) tell() {
	var spare []byte
	for {
		frames, more := o.events.take(spare)
		if !more {
			return
		}
		o.link.out.Lock()
		_, err := o.link.c.Write(frames)
		o.link.out.Unlock()
		if err != nil {
			o.events.close()
			return
		}
		spare = frames
		if cap(spare) > keepQueue {
			spare = nil
		}
	}
}

// keepQueue bounds the buffer that a quiet session keeps.
const keepQueue = 64 << 10

// ask puts a flow that no rule covers to the launcher's person.
func (o *session) ask(ctx context.Context, r policy.Request, d policy.Decision) bool {
	return o.events.ask(ctx, question{Host: r.Host, Port: r.Port, OtherPort: d.Reason == policy.ReasonPortNotListed})
}

// refuse tells the launcher, the log and the record why there is no session.
func (o *session) refuse(err error) {
	_ = o.link.c.SetWriteDeadline(time.Now().Add(endTimeout))
	_ = o.link.sendJSON(kindRefused, refused{Why: err.Error()}) // it may have left
	o.log.Warn("session refused", slog.Any("error", err))
	if o.server.Events != nil {
		if rerr := o.emit(event.SessionRefused, err); rerr != nil {
			o.log.Error("a refused session was not recorded", slog.Any("error", rerr))
		}
	}
}

// ended records the end of a session that stood.
func (o *session) ended(err error) {
	took := slog.Duration("took", time.Since(o.opened))
	if err != nil {
		o.log.Info("session closed", took, slog.Any("error", err))
	} else {
		o.log.Info("session closed", took)
	}
	if rerr := o.emit(event.SessionClosed, err); rerr != nil {
		o.log.Error("the end of a session was not recorded", slog.Any("error", rerr))
	}
}

func (o *session) emit(t event.Type, err error) error {
	e := event.Event{
		Type: t, Session: o.hello.Session, Isolation: o.hello.Isolation, ArgvHash: o.hello.ArgvHash,
		Name: o.server.Name, Client: o.peer.String(), Policy: o.current.Load().Digest(),
	}
	if err != nil {
		e.Error = err.Error()
	}
	if t != event.SessionOpened {
		e.DurationMS = time.Since(o.opened).Milliseconds()
	}
	return o.server.Events.Emit(e)
}

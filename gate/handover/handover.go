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
	"egressd/policy"
	"egressd/proxy/ca"
)

// handover is one launcher, the doors of its sandbox and the gate that serves them.
type handover struct {
	server *Server
	link   *link
	peer   peer
	user   *user // of peer
	bytes  int   // the size of hello
	hello  *hello
	log    *slog.Logger
	events *stream
	opened time.Time

	current policy.Current // what judges

	mu   sync.Mutex     // of what follows, and serialises narrowing
	own  *policy.Policy // the launcher's, before it was narrowed; set once
	gate *gate.Gate     // nil until the launcher was accepted
}

// serveLauncher serves one connection of u until the launcher leaves or daemon
// ends. decided is called once the launcher's doors are served, or will not be.
func (s *Server) serveLauncher(daemon context.Context, c *net.UnixConn, u *user, decided func()) {
	defer decided()
	defer c.Close() //nolint:errcheck // nothing is left to send
	stop := context.AfterFunc(daemon, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	one := &handover{server: s, user: u, link: &link{c: c, in: c}, log: s.log(), events: newStream(AckTimeout), hello: new(hello), opened: time.Now()}
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
	if err := one.accept(daemon); err != nil {
		one.refuse(err)
		return
	}
	doors, err := one.takeDoors()
	decided()
	if err == nil {
		err = one.serve(daemon, doors)
	}
	one.ended(err)
}

// contain keeps a bug that one launcher's messages reach from ending the daemon,
// and with it the way out of every other sandbox.
func (h *handover) contain() {
	if p := recover(); p != nil {
		h.log.Error("a bug ended a session; please report it", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	}
}

// listen finds out who the launcher is and reads its hello.
func (h *handover) listen() (err error) {
	if h.peer, err = peerOf(h.link.c); err != nil {
		return err
	}
	h.log = h.log.With(slog.String("peer", h.peer.String()))
	k, body, err := h.link.receive(or(h.server.Limits.HelloBytes, defaultHelloBytes))
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("the policy and secrets of one session: %w; put long lists into the daemon's policy", err)
	case err != nil:
		return err
	case k != kindHello:
		return errForeign
	}
	hello, err := parseHello(body, h.server.Version)
	if err != nil {
		return err
	}
	h.hello, h.bytes = hello, len(body)
	h.log = h.log.With(slog.String("session", hello.Session))
	return nil
}

// within gives the launcher d for its next message, or no time once daemon has
// ended: the launcher may be stopped, and nobody should wait for it.
func (h *handover) within(daemon context.Context, d time.Duration) {
	_ = h.link.c.SetDeadline(time.Now().Add(d)) // a closed connection says so itself
	if daemon.Err() != nil {
		_ = h.link.c.SetReadDeadline(time.Unix(1, 0))
	}
}

// accept compiles and narrows the policy, makes the gate and answers the hello.
func (h *handover) accept(daemon context.Context) error {
	own, err := policy.Compile(h.hello.Documents...)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.own = own
	h.mu.Unlock()
	h.renarrow()
	if err := h.checkRequests(); err != nil {
		return err
	}
	c, answer := h.gateConfig(), acceptance{Version: h.server.Version, Digest: h.current.Load().Digest()}
	if hosts := h.current.Load().Intercepted(); len(hosts) > 0 {
		if c.CA, err = ca.New(hosts); err != nil {
			return err
		}
		answer.CA = c.CA.PEM()
	}
	g, err := gate.New(c)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.gate = g
	h.mu.Unlock()
	if err := h.emit(&event.SessionOpened{Name: h.server.Name, Client: h.peer.String(), ArgvHash: h.hello.ArgvHash}); err != nil {
		return fmt.Errorf("it could not be recorded: %w", err)
	}
	h.log.Info("session opened", slog.String("digest", answer.Digest))
	h.within(daemon, setUpTimeout)
	if err := h.link.sendJSON(kindReady, answer); err != nil {
		h.log.Warn("the launcher left", slog.Any("error", err)) // takeDoors sees it as well
	}
	return nil
}

// checkRequests refuses what was asked for by name and could only fail, so that
// the person learns of it now and not from a program that cannot connect.
func (h *handover) checkRequests() error {
	p, ceiling := h.current.Load(), h.server.ceiling()
	switch {
	case h.server.Events == nil:
		return errors.New("it keeps no record")
	case ceiling.Digest() == "":
		return fmt.Errorf("its policy %q, the ceiling of this socket, is not in force", h.server.Name)
	case h.own.Audit() && !ceiling.Audit():
		return errors.New("--audit (audit: true) would allow what its policy denies: leave it out, or have its operator set audit in the ceiling")
	}
	if most := ceiling.FileRules(); !most.IsZero() {
		if err := h.own.FileRules().Within(most); err != nil {
			return fmt.Errorf("its policy has a files section: %w", err)
		}
	}
	if len(h.hello.HostPorts) == 0 {
		return nil
	}
	host, err := policy.ParseHost(gate.HostInternal)
	if err != nil {
		return err // unreachable: it is a constant
	}
	for _, port := range h.hello.HostPorts {
		if d := p.DecideAddrs(policy.Request{Host: host, Port: port}, p.Static(host)); !d.Allowed() {
			return fmt.Errorf("--host-port %d: its policy does not allow %s:%d (%s): its operator can add allow: [\"raw:%s:%d\"] and hosts: {%s: 127.0.0.1}",
				port, host, port, d.Reason, host, port, host)
		}
	}
	return nil
}

func (h *handover) gateConfig() gate.Config {
	c := gate.Config{
		Policy: &h.current, Resolver: h.server.Resolver, Events: sinkPair{h.events, h.server.Events},
		Log: h.log, Took: h.server.Took,
		Upstream:     gate.Upstream("", nil), // of the ceiling
		Identity:     gate.Identity{Session: h.hello.Session, Isolation: h.hello.Isolation},
		Interception: gate.Interception{SecretValue: h.secretValue, RootCAs: h.server.RootCAs},
		Shared:       gate.Shared{Own: slices.Concat(h.server.Own, h.hello.Own)},
	}
	if h.hello.Asks {
		c.Ask = h.ask
	}
	return c
}

// secretValue knows the secrets of this launcher, and none of the daemon's.
func (h *handover) secretValue(env string) (placeholder, value string, ok bool) {
	for _, s := range h.hello.Secrets {
		if s.Env == env {
			return s.Placeholder, s.Value, true
		}
	}
	return "", "", false
}

// renarrow puts the present ceiling in force.
func (h *handover) renarrow() (closed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.Store(h.own.Under(h.server.ceiling()))
	if h.gate == nil {
		return 0
	}
	return h.gate.Rejudge()
}

func (h *handover) engine() *gate.Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gate
}

// drain closes the doors and lets flows finish.
func (h *handover) drain(ctx context.Context) error {
	if g := h.engine(); g != nil {
		return g.Drain(ctx)
	}
	return nil
}

// takeDoors waits for the sockets and confirms that they are served.
func (h *handover) takeDoors() (gate.Doors, error) {
	k, body, files, err := h.link.receiveFiles(maxFrame)
	if err != nil {
		return gate.Doors{}, fmt.Errorf("the launcher handed over no sockets: %w", err)
	}
	defer closeFiles(files) //nolint:errcheck // copies
	var announced layout
	if err := decodeFrame(kindDoors, k, body, &announced); err != nil {
		return gate.Doors{}, err
	}
	sockets, err := announced.arrange(files)
	if err != nil {
		return gate.Doors{}, err
	}
	doors, err := sockets.Doors()
	if err != nil {
		return doors, err
	}
	if doors, err = guard(doors, h.user.accepting, h.server.accepting); err != nil {
		return gate.Doors{}, err
	}
	if err := h.link.send(kindServing, nil); err != nil {
		return gate.Doors{}, errors.Join(err, doors.Close())
	}
	return doors, nil
}

// serve serves the doors until the launcher goes or daemon ends.
func (h *handover) serve(daemon context.Context, doors gate.Doors) error {
	_ = h.link.c.SetDeadline(time.Time{}) // a launcher may be stopped for days: that harms only itself
	ctx, cancel := context.WithCancel(daemon)
	defer cancel()
	var wg, sending sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		defer h.contain()
		h.receive()
	})
	wg.Go(func() {
		<-ctx.Done()
		h.events.hangUp()
	})
	sending.Go(func() {
		defer cancel()
		defer h.contain()
		h.send()
	})
	err := h.engine().Serve(ctx, doors)
	cancel() // in case every door closed by itself
	last := end{Lost: h.events.close()}
	if daemon.Err() != nil {
		last.Why = "egressd is being shut down"
	}
	_ = h.link.c.SetWriteDeadline(time.Now().Add(endTimeout))
	sending.Wait()
	_ = h.link.sendJSON(kindEnd, last) // a launcher that died does not read it
	_ = h.link.c.SetReadDeadline(time.Unix(1, 0))
	wg.Wait()
	return err
}

// receive handles the launcher's messages until there are no more.
func (h *handover) receive() {
	defer h.events.hangUp()
	for {
		k, body, err := h.link.receive(maxFrame)
		if err != nil {
			return
		}
		n, rest, ok := splitNumber(body)
		if !ok || len(rest) != 1 || k != kindAck && k != kindAnswer {
			h.log.Warn("the launcher sent a message that the protocol does not have; its session ends")
			return
		}
		h.events.answered(n, rest[0] == 1)
	}
}

// send sends events until the stream is closed and empty, or the launcher gone.
func (h *handover) send() {
	var spare []byte
	for {
		frames, more := h.events.take(spare)
		if !more {
			return
		}
		h.link.out.Lock()
		_, err := h.link.c.Write(frames)
		h.link.out.Unlock()
		if err != nil {
			h.events.close()
			return
		}
		spare = frames
		if cap(spare) > keepQueue {
			spare = nil
		}
	}
}

// keepQueue bounds the buffer that a quiet stream keeps.
const keepQueue = 64 << 10

// ask asks the person at the launcher about a flow that no rule covers.
func (h *handover) ask(ctx context.Context, r policy.Request, d policy.Decision) bool {
	return h.events.ask(ctx, question{Host: r.Host, Port: r.Port, OtherPort: d.Reason == policy.ReasonPortNotListed})
}

// refuse reports to the launcher, the log and the record why its doors are not
// served.
func (h *handover) refuse(err error) {
	_ = h.link.c.SetWriteDeadline(time.Now().Add(endTimeout))
	_ = h.link.sendJSON(kindRefused, refusal{Why: err.Error()}) // the launcher may have left
	h.log.Warn("session refused", slog.Any("error", err))
	if h.server.Events != nil {
		rerr := h.emit(&event.SessionRefused{
			Name: h.server.Name, Client: h.peer.String(), ArgvHash: h.hello.ArgvHash,
			Duration: time.Since(h.opened), Error: err.Error(),
		})
		if rerr != nil {
			h.log.Error("a refused session was not recorded", slog.Any("error", rerr))
		}
	}
}

// ended records the end of a handover that was accepted.
func (h *handover) ended(err error) {
	end := &event.SessionClosed{
		Name: h.server.Name, Client: h.peer.String(), ArgvHash: h.hello.ArgvHash, Duration: time.Since(h.opened),
	}
	took := slog.Duration("took", end.Duration)
	if err != nil {
		end.Error = err.Error()
		h.log.Info("session closed", took, slog.Any("error", err))
	} else {
		h.log.Info("session closed", took)
	}
	if rerr := h.emit(end); rerr != nil {
		h.log.Error("the end of a session was not recorded", slog.Any("error", rerr))
	}
}

func (h *handover) emit(body event.Body) error {
	return h.server.Events.Emit(event.Event{
		Session: h.hello.Session, Isolation: h.hello.Isolation, Policy: h.current.Load().Digest(), Body: body,
	})
}

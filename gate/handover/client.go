package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"egressd/event"
	"egressd/gate"
	"egressd/policy"
)

// Offer is what a launcher asks a daemon to serve.
type Offer struct {
	Version   string
	Session   string // what every event calls the run: 1 to 64 letters, digits, - and _
	Isolation string
	ArgvHash  string // SHA-256 of the command, hex
	Documents []*policy.Document
	Secrets   []Secret
	HostPorts []uint16         // that the person asked for; refused unless they are allowed
	Own       []netip.AddrPort // the launcher's own listeners: never dialled

	// Events records the events of the run; its error denies the flow.
	Events event.Sink
	// Ask is consulted when no rule covers a flow; nil: the denial stands.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool
	// Lost is called at most once, when the daemon is gone or ends the session
	// before the launcher does. The sandbox has no way out then.
	Lost func(err error)
	Log  *slog.Logger // nil discards
}

// Client is the launcher's half of a handover that a daemon accepted.
type Client struct {
	offer  Offer
	link   *link
	bundle []byte
	digest string

	questions sync.WaitGroup
	mu        sync.Mutex
	asked     map[uint64]context.CancelFunc
	err       error // what the record lacks
}

// Dial asks the daemon that listens at path to serve the doors of a sandbox. ctx
// bounds the asking only. The caller closes the Client. A *RefusedError is the
// daemon's refusal.
//
// Threat: somebody else listens at path and gets the values of the secrets -> the
// socket must not lie in a directory that everybody may write, and the listener
// must be root, this user, or the socket's owner. Left over: root and that owner
// are trusted with the traffic and the secrets of the run.
func Dial(ctx context.Context, path string, o Offer) (*Client, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, dialError(path, err)
	}
	conn := c.(*net.UnixConn) // what "unix" gives
	r := &Client{offer: o, link: &link{c: conn, in: conn}, asked: make(map[uint64]context.CancelFunc)}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := r.greet(path); err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return r, nil
}

// dialError reports what to do about a daemon that cannot be reached.
func dialError(path string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOENT):
		hint = ": no such socket; start egressd with --control unix:" + path
	case errors.Is(err, syscall.ECONNREFUSED):
		hint = ": nobody listens there any more; start egressd again"
	case errors.Is(err, syscall.EACCES):
		hint = ": this user may not; run launch as the socket's owner or in its group (ls -l " + path + "), or have the operator open its directory"
	}
	if hint == "" {
		return fmt.Errorf("egressd at %s: %w", path, err)
	}
	return fmt.Errorf("egressd at %s%s", path, hint)
}

// greet sends the hello and reads the answer.
func (r *Client) greet(path string) error {
	if err := checkPeer(path, r.link.c); err != nil {
		return err
	}
	_ = r.link.c.SetDeadline(time.Now().Add(replyTimeout))
	sendErr := r.link.sendJSON(kindHello, hello{
		Protocol: Protocol, Version: r.offer.Version, Session: r.offer.Session, Isolation: r.offer.Isolation,
		ArgvHash: r.offer.ArgvHash, Documents: r.offer.Documents, Secrets: r.offer.Secrets,
		HostPorts: r.offer.HostPorts, Own: r.offer.Own, Asks: r.offer.Ask != nil,
	})
	// A daemon that refuses before it has read all of it closes. Its answer is
	// still there.
	var answer acceptance
	err := r.link.expect(kindReady, maxReply, &answer)
	var no *RefusedError
	switch {
	case errors.As(err, &no):
		return err
	case sendErr != nil:
		return fmt.Errorf("egressd at %s: %w", path, sendErr)
	case err != nil:
		return fmt.Errorf("egressd at %s gave no answer: %w", path, err)
	}
	r.digest = answer.Digest
	if len(answer.CA) > 0 {
		r.bundle = append(append(gate.SystemRoots(), '\n'), answer.CA...)
	}
	return nil
}

// Bundle reports in PEM the certificates that programs inside must trust: the
// roots of this system and the daemon's authority for this run. Nil: the daemon
// opens no TLS of this run.
func (r *Client) Bundle() []byte { return r.bundle }

// Digest is that of the launcher's policy, narrowed by the daemon's.
func (r *Client) Digest() string { return r.digest }

// Open hands the sockets over and closes them, whether it succeeds or not. Nil
// means that the daemon serves them. wg counts the goroutine that it starts, which
// receives events until ctx ends and the daemon has sent the last of them.
func (r *Client) Open(ctx context.Context, wg *sync.WaitGroup, s Sockets) error {
	_ = r.link.c.SetDeadline(time.Now().Add(replyTimeout))
	body, err := json.Marshal(s.layout())
	if err == nil {
		err = r.link.send(kindDoors, body, s.files()...)
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = r.served()
	}
	if err != nil {
		return fmt.Errorf("handing the sandbox's doors to egressd: %w", err)
	}
	_ = r.link.c.SetDeadline(time.Time{})
	wg.Go(func() { r.follow(ctx) })
	return nil
}

func (r *Client) served() error {
	k, body, err := r.link.receive(maxReply)
	switch {
	case err != nil:
		return err
	case k == kindServing && len(body) == 0:
		return nil
	}
	return decodeFrame(kindServing, k, body, new(refusal))
}

// follow receives frames until the daemon has sent its last.
func (r *Client) follow(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		_ = r.link.c.CloseWrite() // the daemon then closes the doors and sends what is left
		_ = r.link.c.SetReadDeadline(time.Now().Add(2 * endTimeout))
	})
	defer stop()
	answers, cancel := context.WithCancel(ctx)
	r.link.in = bufio.NewReader(r.link.c)
	last, err := r.frames(answers)
	cancel()
	r.questions.Wait()
	switch {
	case ctx.Err() == nil && err == nil:
		r.lost(errors.New(last.Why))
	case ctx.Err() == nil:
		r.lost(err)
	case err != nil:
		r.lacks(fmt.Errorf("the last events of egressd did not arrive: %w", err))
	}
	if last.Lost > 0 {
		r.lacks(fmt.Errorf("%d events of this run were not taken in time; they are in the record of egressd", last.Lost))
	}
}

// frames receives frames until the end frame. An error: there was none.
func (r *Client) frames(ctx context.Context) (last end, err error) {
	for {
		k, body, err := r.link.receive(maxReply)
		if errors.Is(err, io.EOF) {
			return last, errors.New("egressd ended")
		} else if err != nil {
			return last, err
		}
		if k == kindEnd {
			return last, strictJSON(body, &last)
		}
		n, rest, ok := splitNumber(body)
		if !ok {
			return last, errForeign
		}
		if err := r.frame(ctx, k, n, rest); err != nil {
			return last, err
		}
	}
}

func (r *Client) frame(ctx context.Context, k kind, n uint64, body []byte) error {
	switch k {
	case kindEvent:
		var e event.Event
		err := e.UnmarshalJSON(body)
		if err != nil {
			return fmt.Errorf("%w: %w", errForeign, err)
		}
		err = r.offer.Events.Emit(e)
		if e.Allowed() {
			return r.answer(kindAck, n, err == nil)
		}
	case kindAsk:
		var q question
		if err := strictJSON(body, &q); err != nil {
			return err
		}
		r.ask(ctx, n, q)
	case kindCancel:
		r.mu.Lock()
		defer r.mu.Unlock()
		if cancel := r.asked[n]; cancel != nil {
			cancel()
		}
	default:
		return errForeign
	}
	return nil
}

func (r *Client) answer(k kind, n uint64, yes bool) error {
	b := byte(0)
	if yes {
		b = 1
	}
	err := r.link.send(k, numbered(n, []byte{b}))
	if errors.Is(err, syscall.EPIPE) {
		return nil // this side has closed its half, or the other is gone: reading finds out which
	}
	return err
}

// ask asks the person without holding up the events.
func (r *Client) ask(ctx context.Context, n uint64, q question) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	full := len(r.asked) >= maxQuestions
	if !full {
		r.asked[n] = cancel
	}
	r.mu.Unlock()
	if full || r.offer.Ask == nil {
		cancel()
		_ = r.answer(kindAnswer, n, false) // reading finds out what is wrong with the connection
		return
	}
	r.questions.Go(func() {
		defer cancel()
		reason := policy.ReasonHostNotListed
		if q.OtherPort {
			reason = policy.ReasonPortNotListed
		}
		yes := r.offer.Ask(ctx, policy.Request{Host: q.Host, Port: q.Port}, policy.Decision{Reason: reason})
		r.mu.Lock()
		delete(r.asked, n)
		r.mu.Unlock()
		_ = r.answer(kindAnswer, n, yes && ctx.Err() == nil) // as above
	})
}

func (r *Client) lost(err error) {
	if r.offer.Lost != nil {
		r.offer.Lost(err)
	}
}

func (r *Client) lacks(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// Close ends the session and reports what the launcher's record of it lacks. Call
// it after what Open started has ended.
func (r *Client) Close() error {
	_ = r.link.c.Close() // nothing is left to send
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// checkSocket refuses a socket that anybody could have put there.
func checkSocket(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return dialError(path, err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("egressd at %s: that is not a socket", path)
	}
	return checkDirectory(path)
}

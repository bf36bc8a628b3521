package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/forward"
	"egressd/proxy/internal/origins"
	"egressd/proxy/internal/socket"
)

var (
	errNotRecorded  = errors.New("the event was not recorded")
	errTooManyBytes = errors.New("the flow carried more bytes than the policy's limit")
	errUnreadable   = errors.New("the origin compressed its answer unasked, so that it cannot be searched for the secret")
)

// forward hands the allowed request to the forwarder and sees to the outcome.
func (x *exchange) forward() {
	var done forward.Outcome
	defer func() { x.recordEnd(done) }()
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	x.end = cancel
	x.content.limit = x.h.s.bounds().bytesPerFlow
	t := &openFlow{Owner: x.h.c, Request: &x.req, Stop: x.stop, Bytes: &x.content.moved}
	x.h.s.track(t, x.up.Policy)
	defer x.h.s.untrack(t)
	defer x.up.Done()
	via, absolute := x.through()
	x.sc.via = via.String()
	login, err := x.login(via, absolute)
	if err != nil {
		x.answerFailure(err)
		return
	}
	done = x.up.Forward(ctx, forward.Exchange{
		Request: x.r, Writer: x.w, Absolute: absolute, ProxyLogin: login,
		Host: x.authority(), HostField: hostField(x.req, x.sc.tls), TLS: x.sc.tls,
		Path: x.facts.Path, Query: x.facts.Query, HTTP10: x.facts.Minor == 0, Upgrade: x.facts.Upgrade,
		Gate: x,
	})
	switch {
	case x.upgraded:
	case done.Failed != nil:
		x.answerFailure(done.Failed)
	case done.Broken != nil:
		x.w.Abort() // the client must see that the response is not whole
	}
}

// stop ends the exchange: the policy now in force denies it, or it went on for
// too long.
func (x *exchange) stop(d policy.Decision, why string) {
	e := &endedBy{d, why}
	if x.ended.CompareAndSwap(nil, e) {
		x.end(e)
	}
}

// Pass implements forward.Gate: it records the allowed request, once, before its
// first byte goes to addr.
func (x *exchange) Pass(addr net.Addr) error {
	if x.rec.Allowed() {
		return nil
	}
	ev := x.h.s.decisionEvent(x.sc, x.req, x.dec, socket.AddrPort(addr))
	x.describe(ev)
	if !x.rec.Allow(x.h.s.stamp(ev)) {
		return errNotRecorded
	}
	x.sent.Store(int64(time.Since(x.start)))
	return nil
}

// Outgoing implements forward.Gate.
func (x *exchange) Outgoing(out *http.Request) {
	if secrets := x.h.s.secretsOf(x.up.Policy); secrets != nil {
		out.Body = secrets.Watch(out.Body, x.misplaced, x.inTrailers)
		if x.sc.tls { // which is verified
			secrets.Substitute(x.req.Host, x.req.Port, out.Header)
			x.content.mask = secrets.Mask(x.req.Host, x.req.Port)
			x.content.mask.Ask(out.Header)
		}
	}
	if x.h.s.Rewrite != nil && x.sc.tls {
		x.h.s.Rewrite(x.req.Host.String(), out)
	}
}

// Incoming implements forward.Gate.
func (x *exchange) Incoming(resp *http.Response) error {
	x.h.s.Took.Since(phase.FirstAnswer, x.sc.flow, x.start.Add(time.Duration(x.sent.Load())))
	if err := x.refusedByProxy(resp); err != nil {
		return err
	}
	if origins.BoundLogin(resp.Header, "Www-Authenticate") {
		x.h.bind()
	}
	if resp.Body != http.NoBody && x.r.Method != http.MethodHead && !x.content.mask.Readable(resp.Header) {
		return errUnreadable
	}
	x.content.mask.Fields(resp.Header)
	resp.Body = x.content.mask.Content(resp.Body)
	return nil
}

// Fields implements forward.Gate.
func (x *exchange) Fields(h http.Header) { x.content.mask.Fields(h) }

// Count implements forward.Gate. An error means that the flow has carried enough.
func (x *exchange) Count(n int) error {
	if x.content.moved.Add(int64(n)) > x.content.limit {
		return errTooManyBytes
	}
	return nil
}

// Upgraded implements forward.Gate.
func (x *exchange) Upgraded() { x.upgraded = true }

// Survive implements forward.Gate.
func (x *exchange) Survive(cleanup func()) {
	if r := recover(); r != nil {
		x.h.c.panicked(r, debug.Stack())
		if cleanup != nil {
			cleanup()
		}
	}
}

// recordEnd writes the end of an allowed request.
func (x *exchange) recordEnd(done forward.Outcome) {
	if !x.rec.Allowed() {
		return
	}
	ev := &event.Close{
		Flow: x.sc.flow, Door: x.sc.door, Host: x.req.Host, Port: x.req.Port,
		BytesOut: done.Sent, BytesIn: done.Received, Duration: time.Since(x.start),
	}
	ended := x.ended.Load()
	switch why := x.h.c.endedFor(); {
	case ended != nil:
		ev.Error = ended.why
	case why != "":
		ev.Error = why
	default:
		if err := errors.Join(done.Failed, done.Broken); err != nil {
			ev.Error = err.Error()
		}
	}
	x.rec.End(x.h.s.stamp(ev))
}

// authority is the judged host and port, as the transport spells it.
func (x *exchange) authority() string {
	return net.JoinHostPort(x.req.Host.String(), strconv.Itoa(int(x.req.Port)))
}

// hostField is the Host of the outgoing request: the judged host, and its port
// if it is not the scheme's own.
func hostField(r policy.Request, tls bool) string {
	host := r.Host.String()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !tls && r.Port == 80 || tls && r.Port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(int(r.Port))
}

// answerFailure tells the client why there is no response.
func (x *exchange) answerFailure(err error) {
	if bad := x.h.gate.BodyErr(); bad != nil {
		x.malformed(bad.Detail, bad.Status)
		return
	}
	dd, stopped := deniedOnTheWay(err)
	var misplaced *misplacedError
	ended := x.ended.Load()
	switch {
	case ended != nil:
		if !x.rec.Allowed() {
			x.recordDenial(ended.d, ended.why)
		}
		x.answer(denial.Response{Request: x.req, Decision: ended.d, Detail: ended.why, Policy: x.h.s.PolicyName, Close: true})
	case x.rec.Unrecorded():
		x.answerDenial(because(policy.ReasonRecordUnavailable), "")
	case stopped && x.rec.Allowed(): // the upstream proxy's answer to a request that is on record
		x.answerDenial(dd.d, dd.detail)
	case stopped:
		x.req.Addr = dd.addr
		x.deny(dd.d, dd.detail)
	case errors.As(err, &misplaced):
		x.last = true // not all of the request was read
		x.answerDenial(misplaced.d, "")
	case errors.Is(err, forward.ErrPanicked):
		x.deny(because(policy.ReasonInternal), "")
	case x.r.Context().Err() != nil, errors.Is(err, forward.ErrShortUpload), errors.Is(err, context.Canceled):
		x.w.Abort() // the client has gone
	default:
		d, detail := upstreamFailure(err)
		if !x.rec.Allowed() {
			x.recordDenial(d, detail)
		}
		x.answer(denial.Response{Request: x.req, Decision: d, Detail: detail})
	}
}

// upstreamFailure finds the reason behind an error of the transport. The detail
// holds names of ours only, never bytes of the origin.
func upstreamFailure(err error) (policy.Decision, string) {
	if errors.Is(err, errTooManyBytes) {
		return policy.Decision{Reason: policy.ReasonOverload}, err.Error()
	}
	for _, known := range []error{errUnreadable, forward.ErrUnasked101, forward.ErrTooMany1xx, forward.ErrBadUpgrade, forward.ErrMalformed} {
		if errors.Is(err, known) {
			return policy.Decision{Reason: policy.ReasonUpstreamError}, err.Error()
		}
	}
	reason, detail := dial.ResponseReason(err)
	return policy.Decision{Reason: reason}, detail
}

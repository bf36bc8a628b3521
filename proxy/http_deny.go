package proxy

import (
	"io"
	"net/http"
	"net/netip"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/http1"
)

// skippedBytes is how much of the body of a denied request is read for the sake
// of the requests behind it.
const skippedBytes = 256 << 10

// malformed refuses what cannot be read as a request.
func (x *exchange) malformed(detail string, status int) {
	d := policy.Decision{Reason: policy.ReasonMalformed}
	switch {
	case status == http.StatusServiceUnavailable:
		d.Reason = policy.ReasonOverload
	case status == http.StatusRequestTimeout:
		d.Reason = policy.ReasonHeadTimeout
	case x.facts.Err != nil && x.facts.Method == "" && !x.sc.explicit():
		d.Reason = policy.ReasonNotHTTP // the first word is not a method: TLS, SSH, anything else
	}
	x.recordDenial(d, detail)
	x.answer(denial.Response{Request: x.req, Decision: d, Detail: detail, Status: status, Close: true})
}

// denyAtOnce denies a request of which no byte was passed on, before its body is
// read, however long the client takes to send it.
func (x *exchange) denyAtOnce(detail string) {
	if x.r.ContentLength == 0 {
		x.deny(x.dec, detail)
		return
	}
	x.deny(x.dec, detail)
	x.w.Flush()
	if x.r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, x.r.Body, skippedBytes) // what is longer ends the connection
	}
}

// deny answers with d. Nothing has been sent to the client yet.
func (x *exchange) deny(d policy.Decision, detail string) {
	if d.Reason == policy.ReasonOverload && detail == "" {
		detail = x.h.c.over()
	}
	x.recordDenial(d, detail)
	x.answerDenial(d, detail)
}

// answerDenial is deny for what is on record already.
func (x *exchange) answerDenial(d policy.Decision, detail string) {
	x.answer(denial.Response{Request: x.req, Decision: d, Detail: detail, Policy: x.h.s.PolicyName, Close: x.last || x.h.c.over() != ""})
}

// answer sends d, of which nothing has been sent.
func (x *exchange) answer(d denial.Response) {
	x.w.SetPhrase(d.Phrase())
	d.Write(x.w, x.r)
}

// refuse answers a request that is not judged at all.
func (x *exchange) refuse(no *refusal) {
	if req, bad := x.sc.target(x.facts); bad == "" {
		x.req = req
	}
	// What follows a CONNECT is not framed, and a client that says that others'
	// requests are on this connection is better off on another one.
	x.last = x.facts.Form == http1.FormAuthority || x.h.c.judgedBy() != nil || no.d.Reason != policy.ReasonNotAuthenticated
	x.dec = no.d
	x.denyAtOnce(no.detail)
}

// recordDenial writes the blocked event. A sink that takes no more events does not
// turn a denial into anything else.
func (x *exchange) recordDenial(d policy.Decision, detail string) {
	ev := x.h.s.decisionEvent(x.sc, x.req, d, netip.AddrPort{})
	x.describe(ev)
	ev.Error = detail
	x.rec.Deny(x.h.s.stamp(ev))
}

func (x *exchange) describe(ev *event.Connection) {
	ev.Method, ev.Path = clip(x.facts.Method), clip(x.facts.Path)
}

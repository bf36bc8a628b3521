// Package learn writes the smallest policy that would have allowed a run. trail
// shows its use: a Recorder is an event.Sink, whose text is a policy file.
//
// It learns hosts, ports, methods and paths as they were used, one by one: it
// guesses no wildcard. What an untrusted program must not teach (addresses of
// private networks, what a deny rule refused, another name in the SNI) becomes a
// comment, for a person to decide.
package learn

import (
	"net/netip"
	"strings"
	"sync"

	"egressd/event"
	"egressd/internal/run/summary"
	"egressd/policy"
	"egressd/policy/files"
)

// Implementation constants that bound a Recorder.
const (
	maxFacts      = 8192
	maxDoubtBytes = 256 // a client chooses part of the words
)

// fact is one thing that a policy must say to allow what was seen.
type fact struct {
	host    policy.Host
	port    uint16 // 0: the name was asked for, and nothing more
	raw     bool
	request string // the rule for one request that path rules judge
	rule    string // a path rule under which nothing was requested
	doubt   string // not learned: why a person must decide
	addr    netip.Addr
}

// Recorder is an event sink that remembers what a policy must say. The zero
// Recorder is ready. Safe for concurrent use; memory is bounded.
type Recorder struct {
	// Static reports the fixed addresses of a name (policy.Policy.Static): they
	// are part of what is learned. Nil: none. Set it before the first Emit.
	Static func(policy.Host) []netip.Addr

	// Files is the files section of the run. It is learned as it is: which of its
	// rules were needed is not known. Set it before the first Emit.
	Files files.Section

	mu    sync.Mutex
	facts map[fact]bool
	list  []fact // in order of appearance
	paths []refusal
	over  bool
}

// Emit implements [event.Sink]. It never fails.
func (r *Recorder) Emit(e event.Event) error {
	var f fact
	var ok bool
	switch b := e.Body.(type) {
	case *event.FileRefused:
		r.file(b)
	case *event.Connection:
		f, ok = ofConnection(b)
	case *event.Query:
		f, ok = ofQuery(b)
	}
	if !ok {
		return nil
	}
	f.doubt = f.doubt[:min(len(f.doubt), maxDoubtBytes)]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.facts[f] {
		return nil
	}
	if len(r.list) >= maxFacts {
		r.over = true
		return nil
	}
	if r.facts == nil {
		r.facts = make(map[fact]bool)
	}
	r.facts[f] = true
	r.list = append(r.list, f)
	return nil
}

// Empty reports whether nothing was learned.
func (r *Recorder) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)+len(r.paths) == 0
}

// ofQuery reads what a DNS question teaches.
func ofQuery(e *event.Query) (fact, bool) {
	f := fact{host: e.Host}
	if e.Reason == policy.ReasonDeniedByRule {
		f.doubt = "denied by rule " + textOf(e.Rule)
	}
	// A name that the policy allows already says nothing new: connections do.
	return f, e.Host.Name() != "" && (e.Decision == event.Blocked || e.Audit)
}

// ofConnection reads what a flow or request teaches.
func ofConnection(e *event.Connection) (fact, bool) {
	f := fact{host: e.Host, port: e.Port}
	if e.Host.IsZero() || e.Port == 0 {
		return fact{}, false
	}
	if e.Decision == event.Allowed && !e.Audit {
		return allowed(f, e), true
	}
	return denied(f, e)
}

// allowed is a flow that the policy of the run let through.
func allowed(f fact, e *event.Connection) fact {
	rule := textOf(e.Rule)
	switch {
	case strings.Contains(rule, "://") && e.Method != "":
		return requested(f, e)
	case strings.Contains(rule, "://"):
		f.rule = rule
	case strings.HasPrefix(rule, "raw:"):
		f.raw = true
	}
	return f
}

// textOf reports the text of r; "" when no rule decided.
func textOf(r *policy.Rule) string {
	if r == nil {
		return ""
	}
	return r.Text
}

// requested is one request that path rules judge.
//
// Threat: the program inside requests /** or /a*b, or uses * for its method, so
// that a rule with the same text allows more, or cannot be read and spoils the
// file -> such a request is a doubt. Left over: nothing.
func requested(f fact, e *event.Connection) fact {
	asked := policy.Request{Host: f.host, Port: f.port, Method: e.Method, Path: e.Path}
	f.request = policy.Decision{Reason: policy.ReasonPathNotListed}.Suggest(asked)
	if f.request == "" {
		f.doubt = "a request whose method or path no rule can spell"
	}
	return f
}

// denied is a flow that the policy of the run did not allow (it was blocked, or
// let through by --audit).
func denied(f fact, e *event.Connection) (fact, bool) {
	switch e.Reason {
	case policy.ReasonMethodNotListed, policy.ReasonPathNotListed:
		return requested(f, e), e.Method != ""
	case policy.ReasonNotTLS, policy.ReasonNotHTTP:
		f.raw = true
	case policy.ReasonCeiling:
		f.doubt = "outside what the daemon allows its sessions"
	case policy.ReasonDeniedByRule:
		f.doubt = "denied by rule " + textOf(e.Rule)
	case policy.ReasonSNIMismatch, policy.ReasonHostMismatch:
		f.doubt = "the client named another host, " + e.Server.String() + ", inside the connection"
	case policy.ReasonIPProhibited:
		if f.host.Name() != "" {
			f.addr = summary.Dialled(e)
		}
		f.doubt = "a special-purpose address"
	case policy.ReasonHostNotListed, policy.ReasonPortNotListed, policy.ReasonNotApproved:
		if a := f.host.Addr(); a.IsValid() {
			if class := policy.ClassifyAddr(a); class != "" {
				f.doubt = "a special-purpose address (" + class + ")"
			}
		}
	case policy.ReasonNotFound, policy.ReasonRefused, policy.ReasonConnectTimeout,
		policy.ReasonUnreachable, policy.ReasonUpstreamTLS, policy.ReasonUpstreamError,
		policy.ReasonDNSError, policy.ReasonDNSTimeout, policy.ReasonInterceptOff:
		return allowed(f, e), true // the rules were not what stopped it
	default:
		return f, false
	}
	return f, true
}

// Package learn writes the smallest policy that would have allowed a run.
//
// It learns hosts, ports, methods and paths as they were used, one by one: no
// wildcard is guessed. What an untrusted program must not teach (addresses of
// private networks, what a deny rule refused, another name in the SNI) is
// written down as a comment for a person to decide.
package learn

import (
	"net/netip"
	"strings"
	"sync"

	"egressd/event"
	"egressd/internal/run/summary"
	"egressd/policy"
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

	mu    sync.Mutex
	facts map[fact]bool
	list  []fact // in order of appearance
	over  bool
}

// Emit implements [event.Sink]. It never fails.
func (r *Recorder) Emit(e event.Event) error {
	if e.Type != event.NetworkConnected && e.Type != event.DNSQuery {
		return nil
	}
	f, ok := factOf(e)
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

// factOf reads what e teaches.
func factOf(e event.Event) (fact, bool) {
	h, err := policy.ParseHost(e.Host)
	if err != nil {
		return fact{}, false
	}
	f := fact{host: h, port: e.Port}
	if e.Type == event.DNSQuery {
		f.port = 0
		if e.Reason == policy.ReasonDeniedByRule.String() {
			f.doubt = "denied by rule " + e.Rule
		}
		// An address in a DNS question, or a name that the policy allows
		// already, says nothing new: connections do.
		return f, h.Name() != "" && (e.Decision == event.Blocked || e.Audit)
	}
	if f.port == 0 {
		return fact{}, false
	}
	if e.Decision == event.Allowed && !e.Audit {
		return allowed(f, e), true
	}
	return denied(f, e)
}

// allowed is a flow that the policy of the run let through.
func allowed(f fact, e event.Event) fact {
	switch {
	case strings.Contains(e.Rule, "://") && e.Method != "":
		return requested(f, e)
	case strings.Contains(e.Rule, "://"):
		f.rule = e.Rule
	case strings.HasPrefix(e.Rule, "raw:"):
		f.raw = true
	}
	return f
}

// requested is one request that path rules judge.
//
// Threat: the program inside requests /** or /a*b, or uses * for its method, so
// that a rule with the same text allows more, or cannot be read and spoils the
// file -> such a request is a doubt. Left over: nothing.
func requested(f fact, e event.Event) fact {
	asked := policy.Request{Host: f.host, Port: f.port, Method: e.Method, Path: e.Path}
	f.request = policy.Decision{Reason: policy.ReasonPathNotListed}.Suggest(asked)
	if f.request == "" {
		f.doubt = "a request whose method or path no rule can spell"
	}
	return f
}

// denied is a flow that the policy of the run did not allow (it was blocked, or
// let through by --audit).
func denied(f fact, e event.Event) (fact, bool) {
	switch e.Reason {
	case policy.ReasonMethodNotListed.String(), policy.ReasonPathNotListed.String():
		return requested(f, e), e.Method != ""
	case policy.ReasonNotTLS.String(), policy.ReasonNotHTTP.String():
		f.raw = true
	case policy.ReasonCeiling.String():
		f.doubt = "outside what the daemon allows its sessions"
	case policy.ReasonDeniedByRule.String():
		f.doubt = "denied by rule " + e.Rule
	case policy.ReasonSNIMismatch.String(), policy.ReasonHostMismatch.String():
		f.doubt = "the client named another host, " + e.Server + ", inside the connection"
	case policy.ReasonIPProhibited.String():
		if f.host.Name() != "" {
			f.addr = summary.Dialled(e)
		}
		f.doubt = "a special-purpose address"
	case policy.ReasonHostNotListed.String(), policy.ReasonPortNotListed.String(), policy.ReasonNotApproved.String():
		if a := f.host.Addr(); a.IsValid() {
			if class := policy.ClassifyAddr(a); class != "" {
				f.doubt = "a special-purpose address (" + class + ")"
			}
		}
	case policy.ReasonNotFound.String(), policy.ReasonRefused.String(), policy.ReasonConnectTimeout.String(),
		policy.ReasonUnreachable.String(), policy.ReasonUpstreamTLS.String(), policy.ReasonUpstreamError.String(),
		policy.ReasonDNSError.String(), policy.ReasonDNSTimeout.String(), policy.ReasonInterceptOff.String():
		return allowed(f, e), true // the rules were not what stopped it
	default:
		return f, false
	}
	return f, true
}

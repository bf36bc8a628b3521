package proxy

import (
	"context"
	"net/netip"
	"slices"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/proxy/internal/socket"
)

// because is the denial with reason r that no rule decided.
func because(r policy.Reason) policy.Decision { return policy.Decision{Reason: r} }

// refusal is a denial and what is to be said about it.
type refusal struct {
	d      policy.Decision
	detail string
}

func refuseFor(r policy.Reason, detail string) *refusal { return &refusal{because(r), detail} }

// judge asks the policy in force about r, and the person (Server.Ask) if no rule
// covers it. Every door and every check goes through here.
func (s *Server) judge(ctx context.Context, c *conn, r policy.Request) policy.Decision {
	return s.recordable(s.ask(ctx, c, r, s.check(c, r)))
}

// recordable is d, unless it allows what could not be recorded now: that would be denied
// later, when the client may have been told to go on.
func (s *Server) recordable(d policy.Decision) policy.Decision {
	if d.Allowed() && (event.Fanout{s.Events}).Unavailable() != nil {
		return because(policy.ReasonRecordUnavailable)
	}
	return d
}

// check is judge without the person.
func (s *Server) check(c *conn, r policy.Request) policy.Decision {
	return s.checkBy(c, r, func(p *policy.Policy) policy.Decision { return p.Decide(r) })
}

// checkAddr is check for r.Addr, which is about to be dialled.
func (s *Server) checkAddr(c *conn, r policy.Request) policy.Decision {
	return s.checkBy(c, r, func(p *policy.Policy) policy.Decision {
		d := p.Decide(r)
		if d.Allowed() {
			d = s.checkLocal(p, r, r.Addr, d)
		}
		return d
	})
}

func (s *Server) checkBy(c *conn, r policy.Request, ask func(*policy.Policy) policy.Decision) policy.Decision {
	if c.over() != "" {
		return because(policy.ReasonOverload)
	}
	if s.loops(c, r) {
		return because(policy.ReasonLoop)
	}
	return s.decide(c, r, ask)
}

// checkAddrs checks all addresses of r.Host at once.
func (s *Server) checkAddrs(c *conn, r policy.Request, addrs []netip.Addr) policy.Decision {
	for _, a := range addrs {
		if s.loops(c, policy.Request{Host: r.Host, Port: r.Port, Addr: a}) {
			return because(policy.ReasonLoop)
		}
	}
	return s.decide(c, r, func(p *policy.Policy) policy.Decision {
		d := p.DecideAddrs(r, addrs)
		for _, a := range addrs {
			if d.Allowed() {
				d = s.checkLocal(p, r, a, d)
			}
		}
		return d
	})
}

// checkLocal is d, unless p denies a because it is this machine's own address. If
// that cannot be found out, nothing goes there.
func (s *Server) checkLocal(p *policy.Policy, r policy.Request, a netip.Addr, d policy.Decision) policy.Decision {
	local, err := socket.Local(a)
	if socket.OutOfFiles(err) {
		s.freeFiles()
		local, err = socket.Local(a)
	}
	switch {
	case err != nil:
		return policy.Decision{Reason: policy.ReasonOverload, Rule: d.Rule}
	case local:
		r.Addr, r.Local = a, true
		return p.Decide(r)
	}
	return d
}

// loops reports whether r leads back to a listener of s or of the Server that c
// came in at.
func (s *Server) loops(c *conn, r policy.Request) bool {
	return s.isOwn(r) || c.front != s && c.front.isOwn(r)
}

// isOwn reports whether r leads to one of the gate's own listeners.
//
// Threat: a client asks the gate to connect to the gate, to reach a listener
// meant for others or to make it call itself until it is full -> the literal
// that would be dialled is compared with every listener, wildcard listeners
// with every address of this machine. Left over: a listener behind another
// machine's address translation.
func (s *Server) isOwn(r policy.Request) bool {
	a := r.Addr
	if !a.IsValid() {
		a = r.Host.Addr()
	}
	if !a.IsValid() {
		return false
	}
	return s.serving.Reached(a, r.Port) ||
		slices.ContainsFunc(s.Own, func(own netip.AddrPort) bool { return socket.Reaches(a, r.Port, own) })
}

// decide asks the policy in force; if that has no rule for a flow that the
// person approved, it asks the policy that consists of that approval.
func (s *Server) decide(c *conn, r policy.Request, ask func(*policy.Policy) policy.Decision) policy.Decision {
	if s.Policy == nil {
		return policy.Decision{}
	}
	start := s.Took.Start()
	d := ask(s.Policy.Load())
	if notListed(d) {
		if p := c.approvals.Policy(r); p != nil {
			d = ask(p)
		}
	}
	s.Took.Since(phase.Decision, 0, start)
	return d
}

// ask lets the person decide about a flow that no rule covers.
func (s *Server) ask(ctx context.Context, c *conn, r policy.Request, d policy.Decision) policy.Decision {
	if s.Ask == nil || !notListed(d) {
		return d
	}
	no := policy.Decision{Reason: policy.ReasonNotApproved, Rule: d.Rule}
	if !s.Ask(ctx, policy.Request{Host: r.Host, Port: r.Port}, d) || ctx.Err() != nil {
		return no
	}
	if err := c.approvals.Add(s.Policy.Load(), r, d); err != nil {
		return no
	}
	return s.check(c, r)
}

// inForce reports the policy in force; nil denies.
func (s *Server) inForce() *policy.Policy {
	if s.Policy == nil {
		return nil
	}
	return s.Policy.Load()
}

func notListed(d policy.Decision) bool {
	return d.Verdict == policy.Deny &&
		(d.Reason == policy.ReasonHostNotListed || d.Reason == policy.ReasonPortNotListed)
}

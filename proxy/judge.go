package proxy

import (
	"context"
	"errors"
	"sync"

	"egressd/policy"
)

// judge asks the policy in force about r, and the person (Server.Ask) where no
// rule covers it. Every door and every look goes through here.
func (s *Server) judge(ctx context.Context, r policy.Request) policy.Decision {
	return s.ask(ctx, r, s.look(ctx, r))
}

// look is judge without the person.
func (s *Server) look(ctx context.Context, r policy.Request) policy.Decision {
	v := visitOf(ctx)
	if v.over() != "" {
		return because(policy.ReasonOverload)
	}
	if s.isOwn(r) || v != nil && v.front != s && v.front.isOwn(r) {
		return because(policy.ReasonLoop)
	}
	return s.decide(ctx, r, func(p *policy.Policy) policy.Decision { return p.Decide(r) })
}

// lookAddrs is look for all addresses of r.Host at once.
func (s *Server) lookAddrs(ctx context.Context, r policy.Request, addrs answer) policy.Decision {
	v := visitOf(ctx)
	for _, a := range addrs {
		one := policy.Request{Host: r.Host, Port: r.Port, Addr: a}
		if s.isOwn(one) || v != nil && v.front != s && v.front.isOwn(one) {
			return because(policy.ReasonLoop)
		}
	}
	return s.decide(ctx, r, func(p *policy.Policy) policy.Decision { return p.DecideAddrs(r, addrs) })
}

// decide asks the policy in force; where that has no rule for a flow that the
// person let pass, it asks the policy that consists of that permission.
func (s *Server) decide(ctx context.Context, r policy.Request, ask func(*policy.Policy) policy.Decision) policy.Decision {
	if s.Policy == nil {
		return policy.Decision{}
	}
	d := ask(s.Policy.Load())
	if notListed(d) {
		if p := approvalsOf(ctx).policy(r); p != nil {
			return ask(p)
		}
	}
	return d
}

// ask lets the person decide about a flow that no rule covers.
func (s *Server) ask(ctx context.Context, r policy.Request, d policy.Decision) policy.Decision {
	if s.Ask == nil || !notListed(d) {
		return d
	}
	approvals := approvalsOf(ctx)
	if approvals == nil || !s.Ask(ctx, policy.Request{Host: r.Host, Port: r.Port}, d) || ctx.Err() != nil {
		return policy.Decision{Reason: policy.ReasonNotApproved, Rule: d.Rule}
	}
	if err := approvals.add(s.Policy.Load(), r, d); err != nil {
		return policy.Decision{Reason: policy.ReasonNotApproved, Rule: d.Rule}
	}
	return s.look(ctx, r)
}

func notListed(d policy.Decision) bool {
	return d.Verdict == policy.Deny &&
		(d.Reason == policy.ReasonHostNotListed || d.Reason == policy.ReasonPortNotListed)
}

// because is the denial with reason r that no rule decided.
func because(r policy.Reason) policy.Decision { return policy.Decision{Reason: r} }

// approvals holds what the person let pass on one client connection: for each
// host and port the policy with that one rule (deny rules and hosts entries
// stay), so that the looks that follow (address, SNI, Host) are taken as for
// any other rule.
type approvals struct {
	mu  sync.Mutex
	let map[hostPort]*policy.Policy
}

// approvalsMax bounds the questions about one kept-alive connection.
const approvalsMax = 64

type hostPort struct {
	host policy.Host
	port uint16
}

func approvalsOf(ctx context.Context) *approvals {
	if v := visitOf(ctx); v != nil {
		return &v.approvals
	}
	return nil
}

func (a *approvals) policy(r policy.Request) *policy.Policy {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.let[hostPort{r.Host, r.Port}]
}

var errTooManyApprovals = errors.New("too many approvals on one connection")

func (a *approvals) add(current *policy.Policy, r policy.Request, d policy.Decision) error {
	rule := d.Suggest(r)
	p, err := current.Only(policy.Entry{Text: rule, Pos: policy.Pos{File: "--approve", Line: 1}})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.let) >= approvalsMax {
		return errTooManyApprovals
	}
	if a.let == nil {
		a.let = make(map[hostPort]*policy.Policy)
	}
	a.let[hostPort{r.Host, r.Port}] = p
	return nil
}

// Package approval holds what a person approved on one client connection.
//
//	var approved approval.Set
//	err := approved.Add(current, r, d) // the person said yes to r, which d denied
//	if p := approved.Policy(r); p != nil {
//		d = p.Decide(r)
//	}
//
// An approval is a policy of one rule: it is judged like any other policy, and
// ends with the connection.
package approval

import (
	"errors"
	"sync"

	"egressd/policy"
)

// Set holds what was approved on one client connection: for each host and port the
// policy with that one rule (deny rules and hosts entries stay), so that the
// checks that follow (address, SNI, Host) are made as for any other rule. The zero
// Set is empty. Safe for concurrent use.
type Set struct {
	mu  sync.Mutex
	all map[hostPort]*policy.Policy
}

// maxApprovals bounds the questions about one kept-alive connection.
const maxApprovals = 64

type hostPort struct {
	host policy.Host
	port uint16
}

// Policy reports the policy of what was approved for the host and port of r; nil:
// nothing was.
func (a *Set) Policy(r policy.Request) *policy.Policy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[hostPort{r.Host, r.Port}]
}

var errTooMany = errors.New("too many approvals on one connection")

// Add approves the rule that d, the decision of current about r, suggests. An
// error means that nothing was approved: a Set holds a bounded number.
func (a *Set) Add(current *policy.Policy, r policy.Request, d policy.Decision) error {
	rule := d.Suggest(r)
	p, err := current.Only(policy.Entry{Text: rule, Pos: policy.Pos{File: "--approve", Line: 1}})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) >= maxApprovals {
		return errTooMany
	}
	if a.all == nil {
		a.all = make(map[hostPort]*policy.Policy)
	}
	a.all[hostPort{r.Host, r.Port}] = p
	return nil
}

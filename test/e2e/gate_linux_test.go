package e2e

import "testing"

// gate is what the tables are about: launch, or a daemon as platform teams run it.
type gate interface {
	// run lets the session's probe try its jobs behind the gate, with the
	// session's flags as the policy, and reports how it went.
	run(t *testing.T, s session) ended
	// watch begins a record of what leaves the gate.
	watch() watch
	// asksFirst reports whether a client's DNS question goes upstream before
	// the client says which port it wants.
	asksFirst() bool
	// people are who the clients are.
	people() []person
}

// launchGate is a launch of its own for each session.
type launchGate struct{}

func (launchGate) run(t *testing.T, s session) ended { t.Helper(); return s.run(t) }
func (launchGate) watch() watch                      { return env.world.watch() }
func (launchGate) asksFirst() bool                   { return false }
func (launchGate) people() []person                  { return people() }

// Package verify tries to get out past egressd, as the agent would:
//
//	err := verify.Run(ctx, verify.Config{Proxy: "127.0.0.1:3128"}, func(r verify.Result) { ... })
//
// It needs no capability and starts no program.
package verify

import (
	"context"
	"time"
)

// Config says what to try. The zero value tries the ways out alone.
type Config struct {
	Allowed []string // URLs that must work
	Denied  []string // URLs that must be blocked in egressd's words
	Proxy   string   // egressd's explicit door, HOST:PORT; "": there is none

	UID    uint32   // egressd's user
	Admin  []string // egressd's admin and control addresses: HOST:PORT, unix:PATH
	Policy []string // policy files

	// Timeout bounds each attempt. Zero means 3 seconds.
	Timeout time.Duration
}

func (c Config) timeout() time.Duration {
	if c.Timeout <= 0 {
		return 3 * time.Second
	}
	return c.Timeout
}

// Result is how one attempt ended.
type Result struct {
	Passed bool
	What   string // what was tried
	How    string // how it ended
	Advice string // what to change when it did not pass; may be empty
}

func pass(how string) Result         { return Result{Passed: true, How: how} }
func leak(how, advice string) Result { return Result{How: how, Advice: advice} }

// check is one attempt.
type check struct {
	what string
	try  func(ctx context.Context, c Config) Result
}

// Run makes every attempt and calls report with each result. The attempts are made
// one at a time: the namespace's counters show which layer refused one.
func Run(ctx context.Context, c Config, report func(Result)) error {
	checks, err := platformChecks(c)
	if err != nil {
		return err
	}
	for _, one := range append(checks, policyChecks(c)...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := one.try(ctx, c)
		r.What = one.what
		report(r)
	}
	return nil
}

const (
	adviseCapture = "run egressd capture in this network namespace, before this container starts"
	advisePlain   = "run this container as another user, without capabilities: cap_drop ALL, allowPrivilegeEscalation: false"
	adviseHidden  = "keep egressd's files and sockets out of this container: no shared volume, no shared process namespace"
	advisePolicy  = "look at the policy: egressd explain URL"
)

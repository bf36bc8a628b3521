// Package verify tries to get out past egressd, as the agent would, and says
// how each attempt ended. It needs no capability and no program beside it.
package verify

import (
	"context"
	"sync"
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

// parallel bounds the attempts at a time: each mostly waits.
const parallel = 8

// Run makes every attempt and reports the results in order. It returns when
// all have ended.
func Run(ctx context.Context, c Config) ([]Result, error) {
	checks, err := platformChecks(c)
	if err != nil {
		return nil, err
	}
	checks = append(checks, policyChecks(c)...)
	results := make([]Result, len(checks))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, one := range checks {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, c.timeout())
			defer cancel()
			results[i] = one.try(ctx, c)
			results[i].What = one.what
		})
	}
	wg.Wait()
	return results, ctx.Err()
}

const (
	adviseCapture = "run egressd capture in this network namespace, before this container starts"
	advisePlain   = "run this container as another user, without capabilities: cap_drop ALL, allowPrivilegeEscalation: false"
	adviseHidden  = "keep egressd's files and sockets out of this container: no shared volume, no shared process namespace"
	advisePolicy  = "look at the policy: egressd explain URL"
)

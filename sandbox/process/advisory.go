package process

import (
	"context"
	"crypto/x509"
	"log/slog"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/policy"
	"egressd/sandbox"
)

// isolationAdvisory names the env tier in events and errors.
const isolationAdvisory = "advisory"

// Advisory is the env tier (--isolation=env): no namespace, only proxy
// variables. A program that ignores them is not stopped, so every event says
// "advisory". The fields are those of [Backend].
type Advisory struct {
	Policy      *policy.Current
	Resolver    *dnsfilter.Resolver
	Events      event.Sink
	Log         *slog.Logger
	Session     string
	Ask         func(ctx context.Context, r policy.Request, d policy.Decision) bool
	SecretValue func(env string) (placeholder, value string, ok bool)
	RootCAs     *x509.CertPool
}

// Isolation reports "advisory".
func (a *Advisory) Isolation() string { return isolationAdvisory }

// Supports reports nil: every system can set variables.
func (a *Advisory) Supports(spec sandbox.Spec) error { return nil }

// Run runs spec with proxy variables that point at a gate on the loopback.
func (a *Advisory) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	return sandbox.Result{ExitCode: 125}, &sandbox.CapabilityError{Isolation: isolationAdvisory, What: "not built yet"}
}

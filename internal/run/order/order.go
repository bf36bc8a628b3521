// Package order reads contracts that others have signed, and says what they order:
// which program, where, with what, for how long. It runs nothing.
//
//	c, err := order.Read(text)
//	err = order.Check(c, order.Terms{Pool: "default", Plane: pem, Isolations: isolations, Now: now})
//	p, err := order.Prepare(c, order.With{Secrets: released, Self: "/usr/bin/launch"})
//
// Whatever is refused is a [Failure], whose class a receipt can hold. Members of an
// execution that are not known here are refused: what cannot be honoured does not run.
package order

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// Classes of failures, as run.failed has them.
const (
	PolicyDenied       = "policy_denied"
	CapabilityMismatch = "capability_mismatch"
	AttestationFailed  = "attestation_failed"
	SecretDenied       = "secret_release_denied"
	CaptureFailed      = "capture_failed"
	TransferFailed     = "transfer_failed"
	SessionFailed      = "session_failed"
	BudgetExceeded     = "budget_exceeded"
)

// Failure is why a contract is not carried out, or not to its end.
type Failure struct {
	Class   string
	Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func fail(class, form string, args ...any) error {
	return &Failure{Class: class, Message: fmt.Sprintf(form, args...)}
}

// FailureOf is err as a failure; one that is none has the class session_failed.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return &Failure{Class: f.Class, Message: err.Error()}
	}
	return &Failure{Class: SessionFailed, Message: err.Error()}
}

// maxContract bounds a contract, in bytes.
const maxContract = 8 << 20

var (
	runID      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	poolName   = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
	secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Read reads a contract and refuses one that is not whole. Members of it that are not
// known stay, because the signature covers them.
func Read(text []byte) (format.Contract, error) {
	var c format.Contract
	if len(text) > maxContract {
		return c, fmt.Errorf("a contract of %d bytes is too long: %d are the most", len(text), maxContract)
	}
	v, err := canonical.Parse(text) // no name twice, and nothing after it
	if err != nil {
		return c, err
	}
	if _, ok := v.(canonical.Object); !ok {
		return c, errors.New("this is no contract: it is no JSON object")
	}
	if err := c.UnmarshalJSON(text); err != nil {
		return c, err
	}
	if c.Version != format.VersionContract {
		return c, fmt.Errorf("this is no contract that launch knows: its version is %q, not %q", c.Version, format.VersionContract)
	}
	if !ValidRunID(c.RunID) {
		return c, fmt.Errorf("runId %q: letters, digits, _, . and - only, 128 at most", c.RunID)
	}
	return c, nil
}

// ValidRunID reports whether a run's ID can be the name of a file.
func ValidRunID(id string) bool { return runID.MatchString(id) && !strings.Contains(id, "..") }

// ValidPool reports whether s can be the name of a pool.
func ValidPool(s string) bool { return poolName.MatchString(s) }

// Terms are what a runner accepts.
type Terms struct {
	Pool       string   // the runner's own; "": any
	Plane      string   // public key of who may order, in PEM; "": whoever did
	Isolations []string // that the runner has
	Inherit    []string // variables of the runner that a contract may ask for
	Bounded    bool     // a policy of the runner bounds what contracts allow
	Now        time.Time
}

// Check refuses a contract that is not for this runner, or asks for more than it
// gives.
//
// Threat: who can write to the plane's store, or stands between, orders runs -> the
// signature is that of a key that the operator has named. A contract that was ordered
// long ago, or for other runners, is carried out here -> its expiry and its pool count.
// A contract that allows every host -> only under a policy of the runner's own.
func Check(c format.Contract, t Terms) error {
	if t.Plane != "" && !c.SignedBy(t.Plane) {
		return fail(AttestationFailed, "the contract's signature is not that of the plane's key %s", format.KeyID(t.Plane))
	}
	expires, err := time.Parse(time.RFC3339Nano, c.ExpiresAt)
	switch {
	case err != nil:
		return fail(AttestationFailed, "the contract's expiresAt is no time: %q", c.ExpiresAt)
	case !t.Now.Before(expires):
		return fail(PolicyDenied, "the contract has expired at %s", c.ExpiresAt)
	case t.Pool != "" && c.Runner.Pool != t.Pool:
		return fail(PolicyDenied, "the contract is for the pool %q, and this runner is in %q", c.Runner.Pool, t.Pool)
	case !slices.Contains(t.Isolations, Isolation(c)):
		return fail(CapabilityMismatch, "runner has no backend for isolation %q", Isolation(c))
	case !c.Network.DefaultDeny && !t.Bounded:
		return fail(PolicyDenied, "the contract allows every host, and this runner has no policy that bounds it: start it with --policy")
	}
	for _, h := range c.Network.AllowHosts {
		if !plainHost(h) {
			return fail(PolicyDenied, "network.allowHosts: %q is not the name of a host", h)
		}
	}
	for _, s := range c.Secrets {
		if !secretName.MatchString(s.Name) {
			return fail(SecretDenied, "%q is not the name of a secret", s.Name)
		}
	}
	if c.Execution == nil || c.Execution.Env == nil {
		return nil
	}
	for _, name := range c.Execution.Env.Inherit {
		if !slices.Contains(t.Inherit, name) {
			return fail(PolicyDenied, "the contract asks for the runner's own variable %q: the runner gives it only with --inherit %s", name, name)
		}
	}
	return nil
}

// Isolation is the isolation that a contract orders.
func Isolation(c format.Contract) string {
	if c.Isolation == "" {
		return "process"
	}
	return c.Isolation
}

// plainHost reports whether h is a host without a port, as contracts have them.
func plainHost(h string) bool {
	h = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(h)), ".")
	return h != "" && len(h) <= 253 && !strings.ContainsAny(h, "/@: \t\r\n")
}

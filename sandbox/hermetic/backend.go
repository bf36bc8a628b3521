// Package hermetic runs shell scripts in an interpreter of ours: the script's
// commands are Go functions over one file system, there is no process and no
// socket in a run, and so nothing to escape with. It is for scripts alone: no
// program of the machine runs in it.
//
// A run is two processes: the launcher (this process) and a worker (this program
// again), which the kernel confines before it reads the script.
package hermetic

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/hermetic/limits"
	"egressd/policy"
)

// isolation names this tier in events and errors.
const isolation = "hermetic"

// Backend is the hermetic tier. Set the fields before the first Run; the zero
// Backend runs scripts that reach nothing and have no curl. Runs may be
// concurrent.
type Backend struct {
	Policy   *policy.Current     // nil denies everything
	Resolver *dnsfilter.Resolver // real look-ups, after the verdict; nil: no name resolves
	Events   event.Sink          // nil denies every flow: what cannot be recorded does not pass
	Log      *slog.Logger        // nil discards
	Session  string              // copied into every event

	// Ask is consulted when no rule covers a flow; nil: the denial stands.
	Ask func(ctx context.Context, r policy.Request, d policy.Decision) bool
	// SecretValue reports what the variable env holds inside (placeholder) and
	// what the gate puts in its place (value). Nil: no secrets.
	SecretValue func(env string) (placeholder, value string, ok bool)
	RootCAs     *x509.CertPool // whom intercepted origins must be verified by; nil: the system's

	Limits  limits.Limits // of one run; zero fields are defaults
	Overlay bool          // keep the script's changes out of the workspace, and report them
	// Changed is told what an overlay held in the end: at most 10,000 changes,
	// total counts all. Nil: nobody is. Without Overlay it is not called.
	Changed func(changes []Change, total int)

	// Protect lists files that the script may not write, rename or replace, such
	// as the policy and the event log.
	Protect []string
	// RunAs is the user the worker runs as when the launcher is root. Nil: the
	// launcher's own user.
	RunAs *Cred
	// Notes is told in a line why a run was ended, and Trace gets what the Go
	// runtime said of a worker that crashed. Nil: nobody is told.
	Notes func(line string)
	Trace io.Writer

	hooks testHooks
}

// Change is one difference between the workspace and an overlay over it.
type Change struct {
	Kind byte   // 'A' added, 'M' modified, 'D' deleted
	Path string // "/src/a.go", from the workspace on
}

// Cred is a user to run as.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

// Isolation reports "hermetic".
func (b *Backend) Isolation() string { return isolation }

func (b *Backend) log() *slog.Logger {
	if b.Log != nil {
		return b.Log
	}
	return slog.New(slog.DiscardHandler)
}

func (b *Backend) note(line string) {
	if b.Notes != nil {
		b.Notes(line)
	}
}

// open reports whether the policy could let anything out. Else there is no gate,
// and no curl.
func (b *Backend) open() bool {
	if b.Policy == nil {
		return false
	}
	p := b.Policy.Load()
	allow, _ := p.Rules()
	return p != nil && (len(allow) > 0 || p.Audit() || b.Ask != nil)
}

// testHooks leave single walls out, so that a test can show what each one stops.
// Only tests set them.
type testHooks struct {
	skip []string
	exe  string // what is executed; "": this program
	cpu  uint64 // seconds of processor time; 0: what is right
}

// Package sandbox says what a run is and what runs it. A tier is a [Backend]:
//
//	spec := sandbox.Spec{Argv: []string{"make", "test"}, Stdout: os.Stdout, Stderr: os.Stderr}
//	if spec.Env, err = sandbox.Env(os.Environ(), spec.Argv, nil); err != nil { ... }
//	if err := backend.Supports(spec); err != nil { ... } // what the tier or this machine can't do
//	res, err := backend.Run(ctx, spec)
//
// The tiers are sandbox/process (namespaces), sandbox/advisory (proxy variables
// alone), sandbox/hermetic (shell scripts in an interpreter of ours) and
// sandbox/vercel (a hosted machine).
package sandbox

import (
	"context"
	"os"
	"time"

	"egressd/policy/files"
)

// Spec is one run. Exactly one of Argv and Script is set.
type Spec struct {
	Argv   []string // program and arguments; the program is looked up in the Env's PATH
	Script string   // shell script
	Shell  string   // sh (default) or bash; only with Script

	Dir string   // working directory; "" is the caller's
	Env []string // the whole environment, KEY=VALUE; backends add what their tier needs

	Stdin, Stdout, Stderr *os.File // used as they are: a terminal stays a terminal; nil is /dev/null

	Timeout time.Duration // zero: none. Then SIGTERM, Grace, SIGKILL of the whole tree; exit 124
	Grace   time.Duration // zero: 5 s

	RunAs   *Cred       // the user to run as when this process is root; nil: its own user
	Files   *files.Gate // which files the program may read and write; nil: the built-in rules for Dir and the HOME of Env
	Protect []string    // files that the program must not write, rename or replace, such as the policy and the event log; they must exist

	// Forwarding, unless nil, is called once, as soon as the signals that this
	// process gets are caught for the program. It is not called if nothing runs.
	Forwarding func()
	// Notes, unless nil, is called with each line that the person should read, such
	// as why a run was ended.
	Notes func(line string)
}

// Cred is a user to run as.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

// Result is how a run ended.
type Result struct {
	ExitCode int // as in a shell: the program's own; 124 timeout, 126, 127, 128+signal
	TimedOut bool
	Met      []string // names of the limits that the run met, such as memory: see the tier
	Started  time.Time
	Ended    time.Time
}

// Backend runs specs in one isolation tier.
type Backend interface {
	Isolation() string        // netns, advisory, hermetic, ...: copied into every event
	Supports(spec Spec) error // *CapabilityError when this tier can't run spec; nothing has run then
	Run(ctx context.Context, spec Spec) (Result, error)
}

// CapabilityError says what the tier or the machine can't do and what to change.
type CapabilityError struct {
	Isolation string
	What      string // what can't be done and why
	Fix       string // what to type or change; "" when nothing helps
}

func (e *CapabilityError) Error() string {
	if e.Fix == "" {
		return e.Isolation + ": " + e.What
	}
	return e.Isolation + ": " + e.What + "\n  fix: " + e.Fix
}

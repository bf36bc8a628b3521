// Package hermetic runs shell scripts in an interpreter of ours: the script's
// commands are Go functions over one file system, there is no process and no
// socket in a run, and so nothing to escape with. It is for scripts alone: no
// program of the machine runs in it.
//
// A run is two processes: the launcher (this process) and a worker (this program
// again), which the kernel confines before it reads the script.
package hermetic

import (
	"io"
	"log/slog"

	"egressd/gate"
	"egressd/hermetic/limits"
)

// isolation names this tier in events and errors.
const isolation = "hermetic"

// Backend is the hermetic tier. Set the fields before the first Run; the zero
// Backend runs scripts that reach nothing and have no curl. Runs may be
// concurrent.
type Backend struct {
	// Gate is what judges and records the flows of a script. Its Isolation is this
	// tier's to set.
	Gate gate.Config

	Limits  limits.Limits // of one run; zero fields are defaults
	Overlay bool          // keep the script's changes out of the workspace, and report them
	// Changed is told what an overlay held in the end: at most 10,000 changes,
	// total counts all. Nil: nobody is. Without Overlay it is not called.
	Changed func(changes []Change, total int)

	Trace io.Writer // gets what the Go runtime said of a worker that crashed; nil: discarded

	hooks testHooks
}

// Change is one difference between the workspace and an overlay over it.
type Change struct {
	Kind byte   // 'A' added, 'M' modified, 'D' deleted
	Path string // "/src/a.go", from the workspace on
}

// Isolation reports "hermetic".
func (b *Backend) Isolation() string { return isolation }

func (b *Backend) log() *slog.Logger {
	if b.Gate.Log != nil {
		return b.Gate.Log
	}
	return slog.New(slog.DiscardHandler)
}

// open reports whether the policy could let anything out. Else there is no gate,
// and no curl.
func (b *Backend) open() bool {
	if b.Gate.Policy == nil {
		return false
	}
	p := b.Gate.Policy.Load()
	allow, _ := p.Count()
	return p != nil && (allow > 0 || p.Audit() || b.Gate.Ask != nil)
}

// testHooks leave single walls out, so that a test can show what each one stops.
// Only tests set them.
type testHooks struct {
	skip []string
	exe  string // what is executed; "": this program
	cpu  uint64 // seconds of processor time; 0: what is right
}

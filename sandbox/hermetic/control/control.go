// Package control holds the messages between the launcher of a hermetic run and
// its worker:
//
//	conn := control.LauncherConn(fd)
//	err := conn.Send(control.Message{Start: &control.Start{Script: "echo hello"}})
//	m, _, err := conn.Receive()
//
// The launcher sends Bounds, then Start; after that orders and reports cross
// freely until the worker sends Ended. Package ipc carries them.
package control

import (
	"syscall"

	"egressd/hermetic/limits"
)

// Name is argv[0] of the worker, by which a process finds that it is one.
const Name = "launch-hermetic"

// Message is one step of the exchange. Exactly one field is set.
type Message struct {
	// From the launcher.
	Bounds  *Bounds      // first: what to confine itself to
	Start   *Start       // then: what to run
	Stop    *StopOrder   // end it now
	Dialled *DialOutcome // with the connection's descriptor

	// From the worker.
	Dial   *DialOrder  // wants a connection to the gate
	Ended  *EndReport  // the script has ended
	Failed *FailReport // no script was run
}

// Bounds are those that the kernel keeps. The worker reads no script before they
// are in place.
type Bounds struct {
	Data    uint64   // bytes of memory (RLIMIT_DATA)
	Address uint64   // bytes of memory and of what is reserved for it (RLIMIT_AS)
	File    uint64   // bytes of one file (RLIMIT_FSIZE)
	Files   uint64   // descriptors (RLIMIT_NOFILE)
	CPU     uint64   // seconds of processor time (RLIMIT_CPU)
	Skip    []string // layers left out; tests only
}

// Start says what to run.
type Start struct {
	Script  string
	Name    string   // $0
	Args    []string // $1 and on
	Options []string // as for set
	Dir     string   // working directory inside, absolute
	Env     []string
	Limits  limits.Limits
	Overlay bool     // the workspace stays as it is
	Protect []string // files inside that the script may not change
	Network bool     // there is a gate to dial
	Roots   []byte   // PEM certificates to trust
}

// StopOrder asks the worker to end the script and report.
type StopOrder struct{}

// DialOrder asks for a connection to the gate.
type DialOrder struct{ ID uint64 }

// DialOutcome answers a DialOrder.
type DialOutcome struct {
	ID  uint64
	Err string // "": the connection's descriptor comes with it
}

// EndReport says how the script ended.
type EndReport struct {
	Code    int    // exit status
	Limit   string // the bound that ended it, in a sentence; "": none
	Changes []Change
	Total   int // changes in all, of which Changes may hold the first; negative: they could not be listed
}

// Change is one difference that an overlay held.
type Change struct {
	Kind byte // 'A', 'M', 'D'
	Path string
}

// FailReport says why no script was run.
type FailReport struct {
	Step  string // the layer that could not be set up
	Err   string
	Errno syscall.Errno // 0 when it was no system call
}

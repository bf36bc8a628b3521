// Package control holds the messages between the supervisor of a run and its
// init:
//
//	conn := control.NewConn(fd)
//	err := conn.Send(control.Message{Signal: &control.SignalOrder{Sig: syscall.SIGINT}})
//	m, files, err := conn.Receive()
//
// The supervisor sends Config, then Go once the init has answered Doors; after
// that orders and reports cross freely until the init sends Exited. Package ipc
// carries them.
package control

import "syscall"

// Message is one step of the exchange. Exactly one field is set.
type Message struct {
	// From the supervisor.
	Config *Config      // first: what to set up
	Go     *GoAhead     // the doors are served: start the program
	Signal *SignalOrder // pass a signal on
	Resume *ResumeOrder // after a stop: go on
	Hold   *HoldOrder   // stop everything for a while
	Dial   *DialOrder   // connect to a server inside

	// From the init.
	Doors    *DoorsReady    // with the listeners' descriptors
	Terminal *TerminalReady // with the master of the program's terminal; before Doors or after
	Stopped  *StopReport    // the program was stopped (Ctrl-Z)
	Held     *HeldReport    // answers Hold
	Exited   *ExitReport    // the program ended
	Failed   *FailReport    // no program was started
	Dialled  *DialOutcome   // with the connection's descriptor
	Refused  *Refusal       // something that a program inside tried
}

// GoAhead carries the program's whole environment.
type GoAhead struct{ Env []string }

// SignalOrder asks for a signal to the program's process group.
type SignalOrder struct {
	Sig syscall.Signal
	All bool // every process inside, not just the program
}

// ResumeOrder continues a stopped program. With Foreground its group holds its
// terminal, else the init does.
type ResumeOrder struct{ Foreground bool }

// HoldOrder stops every process inside, or lets those go on that it has stopped.
// That the program stops or goes on by it is not reported.
type HoldOrder struct{ On bool }

// HeldReport says that nothing inside runs any more but the init.
type HeldReport struct{}

// TerminalReady comes with the master of a pseudo-terminal, which the program has
// wherever the standard files of its init were terminals.
type TerminalReady struct{}

// DialOrder asks for a connection to a server inside.
type DialOrder struct {
	ID   uint64
	Port uint16
}

// DialOutcome answers a DialOrder.
type DialOutcome struct {
	ID  uint64
	Err string // "": the connection's descriptor comes with it
}

// DoorsReady describes the descriptors that come with it, in this order:
// proxy, DNS over TCP, DNS over UDP, the refusal log (when there is one), the
// transparent listeners, and the localhost listeners (two for each port that
// was asked for at most).
type DoorsReady struct {
	Mode        string // capture.Mode
	ProxyPort   uint16
	Transparent int
	Refusals    bool
	Localhost   []uint16 // the port of each localhost listener
	Notes       []string
}

// StopReport says what stopped the program.
type StopReport struct{ Sig syscall.Signal }

// Refusal is something that was refused inside, told once.
type Refusal struct {
	Call string // one of the Call words
	Path string // as it is outside, where that can be said
}

// Calls of a Refusal.
const (
	CallConnect = "connect" // to a unix socket of outside
	CallWrite   = "write"   // a file on a read-only mount
	CallRead    = "read"    // a covered file or directory, which was found empty
	CallMore    = "more"    // of no path: more than is told one by one
	CallUnseen  = "unseen"  // of no path: covers cannot be watched; Path says why
)

// ExitReport says how the program ended.
type ExitReport struct {
	Code   int            // exit code as in a shell
	Signal syscall.Signal // what killed it; 0: it exited
	NotRun bool           // it could not be executed (126, 127)
}

// FailReport says which layer could not be set up.
type FailReport struct {
	Step  string
	Err   string
	Errno syscall.Errno // 0 when it was no system call
}

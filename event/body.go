package event

import (
	"net/netip"
	"time"

	"egressd/policy"
	"egressd/policy/files"
)

// Connection is one decision about one flow or one HTTP request.
type Connection struct {
	Flow uint64 // joins it with its Close; 0: no flow came of it
	Door Door
	Verdict

	Host   policy.Host // as judged; zero when the client named none
	Port   uint16
	Addr   netip.AddrPort // dialled, or refused; else what was captured; zero when none
	Via    string         // host:port of the upstream proxy; "": directly
	Server policy.Host    // SNI or HTTP Host, if it is not Host
	Client netip.AddrPort // zero when it is not known
	Method string         // of an HTTP request
	Path   string         // as sent, without the query
	Error  string         // what went wrong, in words

	// Repeated is how many denials this line stands for, because they came too fast
	// for a line each: this one, the last, and those before. 0: it stands for itself.
	Repeated int64
	First    time.Time // when the first of them was
}

// Packet is traffic that the capture rules refused: UDP, ICMP and other
// protocols that no door carries. It is always blocked.
type Packet struct {
	Proto string     // udp, icmp, ...
	Dst   netip.Addr // zero when only Count is known
	Port  uint16     // 0: the protocol has no ports
	Src   netip.Addr

	// Count is how many packets came too fast for a line each; nothing else is
	// known of them. 0: this is one packet.
	Count int64
}

// Close is the end of an allowed flow or HTTP request.
type Close struct {
	Flow uint64
	Door Door
	Host policy.Host
	Port uint16

	BytesOut int64 // client to origin
	BytesIn  int64 // origin to client
	Duration time.Duration
	Error    string // why it ended, unless both sides just closed
}

// Query is one DNS question.
type Query struct {
	Verdict
	Host   policy.Host    // as judged; zero if it was not, or if it is not a valid host
	Asked  string         // the name as asked, when Host is zero
	Addr   netip.Addr     // the answer that was refused; zero otherwise
	Client netip.AddrPort // zero when it is not known
	QType  string         // mnemonic, or TYPE123
	RCode  RCode          // what the client was answered

	// Repeated is how many denials this line stands for, because they came too fast
	// for a line each: this one, the last, and those before. 0: it stands for itself.
	Repeated int64
	First    time.Time // when the first of them was
}

// Command is a command line that is about to run. Of its words only the hash is
// kept: people put secrets there.
type Command struct {
	ArgvHash    string   // SHA-256 of the words joined by NUL, in hex
	Files       []string // the files section in force, as [files.Section.Lines]; nil: it says nothing
	PolicyFiles []string // policy files that nobody named: how far each counts, its digest and its path
	Limits      string   // on what the run may take from the machine, as --limit has them
}

// RunCompleted is the end of a run whose command ran to its end.
type RunCompleted struct {
	ExitCode  int
	Duration  time.Duration
	LimitsMet string // names of limits, with commas between
}

// RunFailed is the end of a run that could not start, or was cut short.
type RunFailed struct {
	ExitCode  int
	Duration  time.Duration
	Error     string
	LimitsMet string // names of limits, with commas between
}

// FileChanged is a change that a sandbox kept out of the workspace.
type FileChanged struct {
	Path   string // from the workspace on
	Change Change
}

// FileRefused is a file that the program was refused, or would have been.
type FileRefused struct {
	Path   string       // absolute, without links
	Wanted files.Access // ReadOnly: to read it; ReadWrite: to write it. Hidden is no wish and encodes as none
	Reason files.Reason // why it is refused
	Rule   files.Rule   // what refused it; zero: none did
	Count  int64        // how often, at least; 0 is once
}

// FileReplaced says that a file that the program may not change, such as the policy
// or the record itself, was replaced on this machine during the run.
type FileReplaced struct {
	Path    string // absolute
	Was     string // SHA-256 of the file before, in hex; "": not known
	Now     string // of the file that stands there now; "": there is none, or it is not known
	Exposed bool   // the program could write the one that stands there now
}

// PolicyLoaded says that a policy is in force: the first one, or after a
// reload.
type PolicyLoaded struct {
	Name    string // of the policy
	Added   int64  // lines of policy that are new
	Removed int64  // lines of policy that are gone
}

// PolicyRejected says that a reload failed. The policy before stays in force.
type PolicyRejected struct {
	Name  string
	Error string
}

// DaemonStarted is the start of egressd.
type DaemonStarted struct{ Version string }

// DaemonStopped is its end.
type DaemonStopped struct {
	Version  string
	Duration time.Duration
	Error    string // "": it was asked to stop
}

// SessionOpened says that a launcher handed its listeners to the daemon.
type SessionOpened struct {
	Name     string // of the ceiling policy
	Client   string // the user and process that asked
	ArgvHash string // as in Command
}

// SessionRefused says that a launcher asked to and was refused.
type SessionRefused struct {
	Name     string
	Client   string
	ArgvHash string
	Duration time.Duration
	Error    string
}

// SessionClosed says that a session's listeners and flows are gone.
type SessionClosed struct {
	Name     string
	Client   string
	ArgvHash string
	Duration time.Duration
	Error    string // "": the launcher closed it
}

// recordResumed says that lines can be written again, after some could not be. What they
// were about was denied.
type recordResumed struct {
	Lost     uint64        // lines that were not written, at least
	Duration time.Duration // from the first write that failed
	Error    string        // of the last one that did
}

func (*recordResumed) word() string  { return "record.resumed" }
func (*Connection) word() string     { return "network.connected" }
func (*Packet) word() string         { return "network.connected" }
func (*Close) word() string          { return "network.closed" }
func (*Query) word() string          { return "dns.query" }
func (*Command) word() string        { return "command.executed" }
func (*RunCompleted) word() string   { return "run.completed" }
func (*RunFailed) word() string      { return "run.failed" }
func (*FileChanged) word() string    { return "file.changed" }
func (*FileRefused) word() string    { return "file.refused" }
func (*FileReplaced) word() string   { return "file.replaced" }
func (*PolicyLoaded) word() string   { return "policy.loaded" }
func (*PolicyRejected) word() string { return "policy.rejected" }
func (*DaemonStarted) word() string  { return "daemon.started" }
func (*DaemonStopped) word() string  { return "daemon.stopped" }
func (*SessionOpened) word() string  { return "session.opened" }
func (*SessionRefused) word() string { return "session.refused" }
func (*SessionClosed) word() string  { return "session.closed" }

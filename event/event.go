// Package event holds the one record that every door writes, and the sinks
// that take it: an audit writer that never drops, and a fan-out.
//
// One event is one line of JSON, in plain ASCII, whatever bytes a client put
// into it. docs/event.schema.json describes the lines; docs/events.md explains
// them.
package event

import "time"

// Sink takes events. Implementations are safe for concurrent use.
type Sink interface {
	// Emit records e. It returns once e is safely handed over (for the audit
	// writer: once the operating system has the line). An error means that e
	// was not recorded: the caller must deny the flow with reason overload.
	Emit(e Event) error
}

// Type names what happened.
type Type string

// The types of event.
const (
	NetworkConnected Type = "network.connected" // one decision about one flow or one HTTP request
	NetworkClosed    Type = "network.closed"    // the end of an allowed flow: bytes and duration
	DNSQuery         Type = "dns.query"
	CommandExecuted  Type = "command.executed"
	RunCompleted     Type = "run.completed"
	RunFailed        Type = "run.failed"
	FileChanged      Type = "file.changed" // a change that an overlay kept out of the workspace

	PolicyLoaded   Type = "policy.loaded"   // a policy is in force: the first one, or after a reload
	PolicyRejected Type = "policy.rejected" // a reload failed; the policy before stays in force
	DaemonStarted  Type = "daemon.started"
	DaemonStopped  Type = "daemon.stopped"

	SessionOpened  Type = "session.opened"  // a launcher handed its listeners to the daemon
	SessionRefused Type = "session.refused" // ... and was turned away
	SessionClosed  Type = "session.closed"  // its listeners and flows are gone
)

// Door names the way in.
type Door string

// The doors.
const (
	DoorConnect     Door = "connect" // HTTP CONNECT
	DoorHTTP        Door = "http"    // absolute-form HTTP
	DoorSOCKS5      Door = "socks5"
	DoorSOCKS4      Door = "socks4"      // SOCKS4 and 4a
	DoorTransparent Door = "transparent" // captured TCP
	DoorIntercept   Door = "intercept"   // a request inside intercepted TLS
	DoorDNS         Door = "dns"
	DoorKernel      Door = "kernel" // refused by the capture rules: UDP, ICMP, other protocols
)

// Decision words.
const (
	Allowed = "allowed"
	Blocked = "blocked"
)

// Event is one line of the audit trail. Strings may hold anything a client
// sent; encoding makes them safe. Zero fields are left out.
type Event struct {
	Time      time.Time `json:"time"` // the writer fills in a zero time
	Seq       uint64    `json:"seq"`  // set by the writer; gaps mean loss
	Type      Type      `json:"type"`
	Session   string    `json:"session,omitempty"`
	Isolation string    `json:"isolation,omitempty"` // netns, advisory, ...
	Flow      uint64    `json:"flow,omitempty"`      // joins connected and closed

	Door     Door   `json:"door,omitempty"`
	Decision string `json:"decision,omitempty"` // allowed | blocked
	Reason   string `json:"reason,omitempty"`   // policy.Reason
	Rule     string `json:"rule,omitempty"`     // the rule's text
	RulePos  string `json:"rule_pos,omitempty"` // where it stands
	Audit    bool   `json:"audit,omitempty"`    // allowed only because the policy audits
	Policy   string `json:"policy,omitempty"`   // digest of the policy that decided

	Host   string `json:"host,omitempty"` // as judged
	Port   uint16 `json:"port,omitempty"`
	Addr   string `json:"addr,omitempty"`   // dialled, or captured and refused
	Server string `json:"server,omitempty"` // SNI or Host when it is not Host
	Client string `json:"client,omitempty"`
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`  // file.changed: from the workspace on
	Proto  string `json:"proto,omitempty"` // udp, icmp, ... for DoorKernel
	Count  int64  `json:"count,omitempty"` // DoorKernel: packets that came too fast for a line each

	QType string `json:"qtype,omitempty"` // dns.query
	RCode string `json:"rcode,omitempty"`

	BytesOut   int64  `json:"bytes_out,omitempty"` // client to origin
	BytesIn    int64  `json:"bytes_in,omitempty"`  // origin to client
	DurationMS int64  `json:"duration_ms,omitempty"`
	Error      string `json:"error,omitempty"`

	ArgvHash string `json:"argv_hash,omitempty"` // SHA-256, hex
	ExitCode *int   `json:"exit_code,omitempty"`

	Name    string `json:"name,omitempty"`    // of the policy: policy.*, session.*
	Added   int64  `json:"added,omitempty"`   // policy.loaded: lines of policy that are new
	Removed int64  `json:"removed,omitempty"` // policy.loaded: lines of policy that are gone
	Version string `json:"version,omitempty"` // daemon.started
	Change  string `json:"change,omitempty"`  // file.changed: added | modified | deleted
}

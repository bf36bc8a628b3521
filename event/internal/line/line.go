// Package line is the shape of one line of the audit trail: its keys, in their
// closed order, with values as a reader of the file finds them.
//
// Package event decodes lines through it, and tests compare what it holds. It
// knows the format alone: which words are valid is package event's to say.
package line

import "time"

// Line is one decoded line. A field that the line leaves out is zero. Fields,
// embedded ones included, stand in the order of the keys, which never changes;
// docs/event.schema.json says what each means.
type Line struct {
	Time      time.Time `json:"time"`
	Seq       uint64    `json:"seq"`
	Type      string    `json:"type"`
	Session   string    `json:"session,omitempty"`
	Isolation string    `json:"isolation,omitempty"`
	Flow      uint64    `json:"flow,omitempty"`
	Verdict
	Target
	Traffic
	About
	Origin
}

// Verdict is what was decided about a flow, a request or a DNS query, and why.
type Verdict struct {
	Door     string `json:"door,omitempty"`
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Rule     string `json:"rule,omitempty"`
	RulePos  string `json:"rule_pos,omitempty"`
	Audit    bool   `json:"audit,omitempty"`
	Policy   string `json:"policy,omitempty"`
}

// Target is who asked for what.
type Target struct {
	Host   string `json:"host,omitempty"`
	Port   uint16 `json:"port,omitempty"`
	Addr   string `json:"addr,omitempty"`
	Via    string `json:"via,omitempty"`
	Server string `json:"server,omitempty"`
	Client string `json:"client,omitempty"`
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	Proto  string `json:"proto,omitempty"`
	Count  int64  `json:"count,omitempty"`
	Repeats
	QType string `json:"qtype,omitempty"`
	RCode string `json:"rcode,omitempty"`
}

// Repeats is how many denials a line stands for, if not one.
type Repeats struct {
	Repeated int64      `json:"repeated,omitempty"`
	First    *time.Time `json:"first,omitempty"`
}

// Traffic is what a flow carried, for how long, and what went wrong.
type Traffic struct {
	BytesOut   int64  `json:"bytes_out,omitempty"`
	BytesIn    int64  `json:"bytes_in,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
	Error      string `json:"error,omitempty"`
}

// About is what only events of runs, policies and the daemon say.
type About struct {
	ArgvHash    string   `json:"argv_hash,omitempty"`
	ExitCode    *int     `json:"exit_code,omitempty"`
	Name        string   `json:"name,omitempty"`
	Added       int64    `json:"added,omitempty"`
	Removed     int64    `json:"removed,omitempty"`
	Version     string   `json:"version,omitempty"`
	Change      string   `json:"change,omitempty"`
	Wanted      string   `json:"wanted,omitempty"`
	Files       []string `json:"files,omitempty"`
	PolicyFiles []string `json:"policy_files,omitempty"`
	Was         string   `json:"was,omitempty"`
	Now         string   `json:"now,omitempty"`
	Exposed     bool     `json:"exposed,omitempty"`
	Bounds
	Lost uint64 `json:"lost,omitempty"`
}

// Bounds are those on what a run may take from the machine.
type Bounds struct {
	Limits    string `json:"limits,omitempty"`
	LimitsMet string `json:"limits_met,omitempty"`
}

// Origin is who wrote a line, the same for all of one start of one program.
type Origin struct {
	V        int               `json:"v,omitempty"`
	Boot     string            `json:"boot,omitempty"`
	Resource map[string]string `json:"resource,omitempty"`
}

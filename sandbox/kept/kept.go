// Package kept is what launch remembers between its runs: sandboxes with a
// name, the processes that ran in them with their output, and the snapshots of
// tasks. It is files under one directory; it starts and reaches nothing.
package kept

import (
	"errors"
	"time"
)

// Sandbox is a place where programs run, under a name.
type Sandbox struct {
	Version int       `json:"version"` // 1
	Name    string    `json:"name"`    // see ValidName
	Tier    string    `json:"tier"`    // process, hermetic or vercel
	Status  string    `json:"status"`  // StatusActive or StatusStopped
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`

	Workspace string   `json:"workspace"`       // absolute, of this machine
	Flags     []string `json:"flags,omitempty"` // launch's flags to run in it again; of --env the names only

	// Remote names what a hosted tier knows it by; never a credential.
	Remote map[string]string `json:"remote,omitempty"`
	Reason string            `json:"reason,omitempty"` // why it was stopped, when nobody asked for it
}

// Status of a sandbox.
const (
	StatusActive  = "active"
	StatusStopped = "stopped"
)

// Status of a process. Running may become any other; the others stay.
const (
	Running = "running"
	Exited  = "exited" // with 0
	Failed  = "failed" // with anything else, or it could not run
	Killed  = "killed" // on request, or at its deadline
	Lost    = "lost"   // nobody knows how it ended
)

// Process is one program that ran in a sandbox.
type Process struct {
	Version  int    `json:"version"` // 1
	ID       string `json:"id"`
	Sandbox  string `json:"sandboxId"`
	Kind     string `json:"kind"` // command or script
	Mode     string `json:"mode"` // foreground or background
	Status   string `json:"status"`
	Provider string `json:"provider"` // the tier

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Dir     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // names; every value is Redacted

	StreamID string         `json:"streamId"`
	ClientID string         `json:"streamClientId"` // sandbox-process:ID
	Started  time.Time      `json:"startedAt"`
	Ended    *time.Time     `json:"exitedAt,omitempty"`
	ExitCode *int           `json:"exitCode,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"` // "reason": why it is lost; "remote": the command's name elsewhere
}

// Redacted stands for the value of every variable.
const Redacted = "<redacted>"

// Over reports whether the process has ended, or is given up.
func (p *Process) Over() bool { return p.Status != Running }

// Errors of this package, to be told apart with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrDamaged  = errors.New("the record is damaged, or of a newer launch")
)

// maxName is what a name may have, so that it is a file's name everywhere.
const maxName = 80

// ValidName says what is wrong with the name of a sandbox or task; "" when it
// is one: letters, digits, "-", "_" and ".", the first a letter or digit.
func ValidName(name string) string {
	if name == "" {
		return "the name is empty"
	}
	if len(name) > maxName {
		return "the name is longer than 80 bytes"
	}
	for i := range len(name) {
		c := name[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !plain && (i == 0 || c != '-' && c != '_' && c != '.') {
			return "the name may have letters, digits, - _ and ., and begins with a letter or digit"
		}
	}
	return ""
}

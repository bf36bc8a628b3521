// Package records keeps what launch remembers between its runs: named
// sandboxes, the processes that ran in them with their output, and the
// snapshots of tasks.
//
//	store, err := records.Open(dir, nil)
//	defer store.Close()
//	err = store.Create(records.Sandbox{Name: "dev", Tier: "process", Workspace: dir})
//	rec, err := store.Start(records.Process{Sandbox: "dev", Command: "make"})
//	rec.Write(records.ChunkStdout, output)
//	err = rec.Finish("", &exitCode, "")
//
// Records are JSON files under one directory, each with a version. The package
// starts no process and opens no connection.
package records

import (
	"errors"
	"strings"
	"time"
)

// version is that of every record. A record of another version is ErrDamaged.
const version = 1

// Sandbox is a place with a name in which programs run.
type Sandbox struct {
	Version int           `json:"version"`
	Name    string        `json:"name"` // see ValidName
	Tier    string        `json:"tier"` // process, hermetic or vercel
	Status  SandboxStatus `json:"status"`
	Created time.Time     `json:"createdAt"`
	Updated time.Time     `json:"updatedAt"`

	Workspace string   `json:"workspace"`       // absolute, on this machine
	Flags     []string `json:"flags,omitempty"` // launch's flags for the next run in it; of --env the names only

	Remote Remote `json:"remote,omitzero"`  // of a hosted tier
	Reason string `json:"reason,omitempty"` // why it stopped, if nobody asked for it
	Seal   string `json:"seal,omitempty"`   // see Store.Trusted
}

// SandboxStatus is the state of a sandbox.
type SandboxStatus string

// States of a sandbox.
const (
	Active  SandboxStatus = "active"
	Stopped SandboxStatus = "stopped"
)

// Remote is how a hosted tier knows a sandbox. It never holds a credential. The
// zero Remote is a sandbox on this machine.
type Remote struct {
	Project string    `json:"project"`
	Region  string    `json:"region"`
	Sandbox string    `json:"sandbox"`
	Session string    `json:"session"`
	Team    string    `json:"team"`
	Until   time.Time `json:"until,omitzero"` // it ends by itself then; zero: not known
	Workdir string    `json:"workdir"`
}

// Status is the state of a process. Running may become any other; the others
// are final.
type Status string

// States of a process.
const (
	Running Status = "running"
	Exited  Status = "exited" // with 0
	Failed  Status = "failed" // with another code, or it could not run
	Killed  Status = "killed" // on request, or at its deadline
	Lost    Status = "lost"   // how it ended is not known
)

// Process is one program that ran in a sandbox.
type Process struct {
	Version  int    `json:"version"`
	ID       string `json:"id"`
	Sandbox  string `json:"sandboxId"`
	Kind     string `json:"kind"` // KindCommand or KindScript
	Mode     string `json:"mode"` // Foreground or Background
	Status   Status `json:"status"`
	Provider string `json:"provider"` // the tier

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Dir     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // by name; every value is Redacted

	StreamID string     `json:"streamId"`
	ClientID string     `json:"streamClientId"` // sandbox-process:ID
	Started  time.Time  `json:"startedAt"`
	Ended    *time.Time `json:"exitedAt,omitempty"`
	ExitCode *int       `json:"exitCode,omitempty"`
	Metadata Metadata   `json:"metadata,omitzero"`
}

// Kinds of processes.
const (
	KindCommand = "command"
	KindScript  = "script"
)

// Modes of processes.
const (
	Foreground = "foreground"
	Background = "background"
)

// Metadata is what launch notes about a process beside how it runs.
type Metadata struct {
	Launcher int           `json:"launcher,omitempty"`        // process id of the launch that started it
	Started  string        `json:"launcherStarted,omitempty"` // when that started; see StartedAt
	Seal     string        `json:"seal,omitempty"`            // see Store.TrustedLauncher
	Leaving  bool          `json:"leaving,omitempty"`         // its run is done with the sandbox
	Output   string        `json:"output,omitempty"`          // why its output is not recorded
	Reason   string        `json:"reason,omitempty"`          // why it is lost
	Remote   RemoteCommand `json:"remote,omitzero"`
	Stopping bool          `json:"stopping,omitempty"` // somebody asked for its end
}

// RemoteCommand is how a hosted tier knows a process. The zero RemoteCommand is
// a process of this machine.
type RemoteCommand struct{ Session, ID string }

// Known reports whether the hosted tier can be asked about the process.
func (c RemoteCommand) Known() bool { return c.Session != "" && c.ID != "" }

// MarshalText spells c as SESSION/ID.
func (c RemoteCommand) MarshalText() ([]byte, error) {
	if c.ID == "" {
		return []byte(c.Session), nil
	}
	return []byte(c.Session + "/" + c.ID), nil
}

// UnmarshalText reads SESSION/ID. A text without an ID is not an error: the
// process is remote, but not Known.
func (c *RemoteCommand) UnmarshalText(text []byte) error {
	c.Session, c.ID, _ = strings.Cut(string(text), "/")
	return nil
}

// Redacted stands for the value of every variable.
const Redacted = "<redacted>"

// Over reports whether the process has ended or is lost.
func (p *Process) Over() bool { return p.Status != Running }

// Errors of this package, for errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrDamaged  = errors.New("the record is damaged, or of a newer launch")
)

// maxName bounds a name, so that it is a valid file name on every system.
const maxName = 80

// ValidName reports what is wrong with the name of a sandbox or task, or "" if
// it is valid: letters, digits, "-", "_" and ".", beginning with a letter or
// digit.
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

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"egressd/sandbox/vercel/api/firewall"
)

// Int is a whole number. It is read from an integer, a fraction (which is
// rounded), a string of digits, or null, which is 0.
type Int int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Int) UnmarshalJSON(b []byte) error {
	b = bytes.Trim(b, `"`)
	if string(b) == "null" || len(b) == 0 {
		*n = 0
		return nil
	}
	if i, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*n = Int(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(f) > 1<<62 {
		return fmt.Errorf("%q is not a number", b)
	}
	*n = Int(math.Round(f))
	return nil
}

// Millis is a duration in milliseconds.
type Millis = Int

// MillisOf rounds d to milliseconds.
func MillisOf(d time.Duration) Millis { return Millis(d.Milliseconds()) }

// Duration is n milliseconds.
func (n Int) Duration() time.Duration {
	if n > math.MaxInt64/Int(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

// Time is n milliseconds after 1970, or the zero time if n is 0.
func (n Int) Time() time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n))
}

// Status is the state of a sandbox or session.
type Status string

// The states. The last three are final.
const (
	Pending      Status = "pending"
	Running      Status = "running"
	Stopping     Status = "stopping"
	Snapshotting Status = "snapshotting"
	Stopped      Status = "stopped"
	Failed       Status = "failed"
	Aborted      Status = "aborted"
)

// Final reports whether the state can no longer change.
func (s Status) Final() bool { return s == Stopped || s == Failed || s == Aborted }

// Sandbox is a named thing that sessions are booted from.
type Sandbox struct {
	Name              string            `json:"name"`
	Status            Status            `json:"status"`
	Persistent        bool              `json:"persistent"`
	CurrentSessionID  string            `json:"currentSessionId"`
	CurrentSnapshotID string            `json:"currentSnapshotId"`
	Region            string            `json:"region"`
	Architecture      string            `json:"architecture"`
	Runtime           string            `json:"runtime"`
	Image             string            `json:"image"`
	Cwd               string            `json:"cwd"`
	VCPUs             Int               `json:"vcpus"`
	MemoryMB          Int               `json:"memory"`
	Timeout           Millis            `json:"timeout"`
	NetworkPolicy     *firewall.State   `json:"networkPolicy"`
	Tags              map[string]string `json:"tags"`
	CreatedAt         Int               `json:"createdAt"` // as all times: milliseconds since 1970
	UpdatedAt         Int               `json:"updatedAt"`
	StatusUpdatedAt   Int               `json:"statusUpdatedAt"`
	ExpiresAt         Int               `json:"expiresAt"` // 0: never

	EgressBytes  Int    `json:"totalEgressBytes"`
	IngressBytes Int    `json:"totalIngressBytes"`
	ActiveCPU    Millis `json:"totalActiveCpuDurationMs"`
	TotalTime    Millis `json:"totalDurationMs"`

	SnapshotExpiration Millis         `json:"snapshotExpiration"`
	KeepLastSnapshots  *KeepSnapshots `json:"keepLastSnapshots"`
}

// Session is one microVM.
type Session struct {
	ID               string          `json:"id"`
	Status           Status          `json:"status"`
	Sandbox          string          `json:"sourceSandboxName"`
	SourceSnapshotID string          `json:"sourceSnapshotId"`
	ProjectID        string          `json:"projectId"`
	Region           string          `json:"region"`
	Architecture     string          `json:"architecture"`
	Runtime          string          `json:"runtime"`
	Cwd              string          `json:"cwd"`
	VCPUs            Int             `json:"vcpus"`
	MemoryMB         Int             `json:"memory"`
	Timeout          Millis          `json:"timeout"`
	NetworkPolicy    *firewall.State `json:"networkPolicy"`
	RequestedAt      Int             `json:"requestedAt"`
	CreatedAt        Int             `json:"createdAt"`
	StartedAt        Int             `json:"startedAt"`
	UpdatedAt        Int             `json:"updatedAt"`
	RequestedStopAt  Int             `json:"requestedStopAt"`
	StoppedAt        Int             `json:"stoppedAt"`
	AbortedAt        Int             `json:"abortedAt"`
	SnapshottedAt    Int             `json:"snapshottedAt"`
	Duration         Millis          `json:"duration"`
	ActiveCPU        Millis          `json:"activeCpuDurationMs"`
	InteractivePort  Int             `json:"interactivePort"`
	NetworkTransfer  struct {        // bytes, after stop
		Ingress Int `json:"ingress"`
		Egress  Int `json:"egress"`
	} `json:"networkTransfer"`
}

// Command is one process that was started by its id.
type Command struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Args      []string `json:"args"`
	Cwd       string   `json:"cwd"`
	SessionID string   `json:"sessionId"`
	StartedAt Int      `json:"startedAt"`
	ExitCode  *Int     `json:"exitCode"` // nil: it runs
	Duration  Millis   `json:"durationMs"`
}

// Exited says that the command has ended.
func (c *Command) Exited() bool { return c.ExitCode != nil }

// Snapshot is a disk that sandboxes can be made from.
type Snapshot struct {
	ID              string   `json:"id"`
	SourceSessionID string   `json:"sourceSessionId"`
	ParentID        string   `json:"parentId"`
	Region          string   `json:"region"`
	Regions         []string `json:"regions"`
	Status          string   `json:"status"` // created, deleted or failed
	Method          string   `json:"creationMethod"`
	SizeBytes       Int      `json:"sizeBytes"`
	CreatedAt       Int      `json:"createdAt"`
	UpdatedAt       Int      `json:"updatedAt"`
	LastUsedAt      Int      `json:"lastUsedAt"`
	ExpiresAt       Int      `json:"expiresAt"` // 0: never
}

// Route is one published port.
type Route struct {
	URL       string `json:"url"`
	Subdomain string `json:"subdomain"`
	Port      Int    `json:"port"`
	System    bool   `json:"system"` // not one that was asked for
}

// Instance is a sandbox with its current session.
type Instance struct {
	Sandbox Sandbox `json:"sandbox"`
	Session Session `json:"session"`
	Routes  []Route `json:"routes"`
	Resumed bool    `json:"resumed"` // a new session was booted for this answer
}

// page is what lists come with.
type page struct {
	Pagination struct {
		Next json.RawMessage `json:"next"`
	} `json:"pagination"`
}

// next is the cursor of the page that follows; "" is the end.
func (p page) next() string {
	var s string
	if err := json.Unmarshal(p.Pagination.Next, &s); err != nil {
		return ""
	}
	return s
}

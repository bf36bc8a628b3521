package fake

import (
	"egressd/sandbox/vercel/fake/internal/drives"
	"egressd/sandbox/vercel/fake/internal/firewall"
)

// The answers of the API, VERCEL.md sections 4 and 9. Times are milliseconds
// since 1970, durations milliseconds, memory MB.

type sandboxJSON struct {
	Name                     string            `json:"name"`
	CurrentSessionID         string            `json:"currentSessionId"`
	CurrentSnapshotID        string            `json:"currentSnapshotId,omitempty"`
	Status                   string            `json:"status"`
	StatusUpdatedAt          int64             `json:"statusUpdatedAt"`
	Persistent               bool              `json:"persistent"`
	Region                   string            `json:"region"`
	FailoverRegions          []string          `json:"failoverRegions"`
	Architecture             string            `json:"architecture"`
	VCPUs                    int               `json:"vcpus"`
	Memory                   int               `json:"memory"`
	Runtime                  string            `json:"runtime,omitempty"`
	Image                    string            `json:"image,omitempty"`
	Timeout                  int64             `json:"timeout"`
	NetworkPolicy            *firewall.JSON    `json:"networkPolicy,omitempty"`
	NetworkID                string            `json:"networkId,omitempty"`
	TotalEgressBytes         *int64            `json:"totalEgressBytes,omitempty"`
	TotalIngressBytes        *int64            `json:"totalIngressBytes,omitempty"`
	TotalActiveCPUDurationMs *int64            `json:"totalActiveCpuDurationMs,omitempty"`
	TotalDurationMs          *int64            `json:"totalDurationMs,omitempty"`
	ExpiresAt                int64             `json:"expiresAt,omitempty"`
	Cwd                      string            `json:"cwd"`
	Tags                     map[string]string `json:"tags,omitempty"`
	Mounts                   drives.Mounts     `json:"mounts,omitempty"`
	SnapshotExpiration       *int64            `json:"snapshotExpiration,omitempty"`
	KeepLastSnapshots        *keepLast         `json:"keepLastSnapshots,omitempty"`
	CreatedAt                int64             `json:"createdAt"`
	UpdatedAt                int64             `json:"updatedAt"`
}

type keepLast struct {
	Count         int    `json:"count"`
	Expiration    *int64 `json:"expiration,omitempty"`
	DeleteEvicted *bool  `json:"deleteEvicted,omitempty"`
}

type sessionJSON struct {
	ID                  string         `json:"id"`
	Status              string         `json:"status"`
	Memory              int            `json:"memory"`
	VCPUs               int            `json:"vcpus"`
	Region              string         `json:"region"`
	Runtime             string         `json:"runtime,omitempty"`
	Architecture        string         `json:"architecture"`
	Timeout             int64          `json:"timeout"`
	RequestedAt         int64          `json:"requestedAt"`
	StartedAt           int64          `json:"startedAt,omitempty"`
	RequestedStopAt     int64          `json:"requestedStopAt,omitempty"`
	StoppedAt           int64          `json:"stoppedAt,omitempty"`
	AbortedAt           int64          `json:"abortedAt,omitempty"`
	SnapshottedAt       int64          `json:"snapshottedAt,omitempty"`
	Duration            *int64         `json:"duration,omitempty"`
	CreatedAt           int64          `json:"createdAt"`
	UpdatedAt           int64          `json:"updatedAt"`
	Cwd                 string         `json:"cwd"`
	InteractivePort     int            `json:"interactivePort,omitempty"`
	SourceSnapshotID    string         `json:"sourceSnapshotId,omitempty"`
	SourceSandboxName   string         `json:"sourceSandboxName"`
	ProjectID           string         `json:"projectId"`
	NetworkPolicy       *firewall.JSON `json:"networkPolicy,omitempty"`
	ActiveCPUDurationMs *int64         `json:"activeCpuDurationMs,omitempty"`
	NetworkTransfer     *transferJSON  `json:"networkTransfer,omitempty"`
}

type transferJSON struct {
	Ingress int64 `json:"ingress"`
	Egress  int64 `json:"egress"`
}

type routeJSON struct {
	URL       string `json:"url"`
	Subdomain string `json:"subdomain"`
	Port      int    `json:"port"`
}

type commandJSON struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Args       []string `json:"args"`
	Cwd        string   `json:"cwd"`
	SessionID  string   `json:"sessionId"`
	StartedAt  int64    `json:"startedAt"`
	ExitCode   *int     `json:"exitCode"`
	DurationMs *int64   `json:"durationMs,omitempty"`
}

type snapshotJSON struct {
	ID              string   `json:"id"`
	SourceSessionID string   `json:"sourceSessionId"`
	Architecture    string   `json:"architecture"`
	Region          string   `json:"region"`
	Regions         []string `json:"regions"`
	Status          string   `json:"status"`
	SizeBytes       int64    `json:"sizeBytes"`
	ExpiresAt       int64    `json:"expiresAt,omitempty"`
	CreatedAt       int64    `json:"createdAt"`
	UpdatedAt       int64    `json:"updatedAt"`
	LastUsedAt      int64    `json:"lastUsedAt,omitempty"`
	CreationMethod  string   `json:"creationMethod"`
	ParentID        string   `json:"parentId,omitempty"`
}

// answer is the body of most answers; what is nil is absent.
type answer struct {
	Sandbox  *sandboxJSON  `json:"sandbox,omitempty"`
	Session  *sessionJSON  `json:"session,omitempty"`
	Snapshot *snapshotJSON `json:"snapshot,omitempty"`
	Command  *commandJSON  `json:"command,omitempty"`
	Routes   *[]routeJSON  `json:"routes,omitempty"`
	Resumed  *bool         `json:"resumed,omitempty"`
}

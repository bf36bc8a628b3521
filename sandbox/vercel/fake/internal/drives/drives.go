// Package drives keeps storage that sandboxes of the double mount. A drive that a
// sandbox may write to is that one's alone; others mount copies of what it held
// when they started.
package drives

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// Bounds of drives.
const (
	maxDrives   = 256
	maxMounts   = 16
	DefaultSize = 1 << 40 // bytes; it is shown, and holds nobody
)

// The ways to mount a drive.
const (
	modeWrite    = "read-write"
	modeSnapshot = "snapshot"
	modeRead     = "read-only" // an older name of a snapshot's
)

// Mounts are a sandbox's drives, by the path where each is.
type Mounts map[string]Mount

// Mount is how the API names a drive in a sandbox.
type Mount struct {
	Drive string `json:"drive"`
	Mode  string `json:"mode"`
}

// ParseMounts reads mounts as a client sends them. The error is a *reply.Error.
func ParseMounts(raw json.RawMessage) (Mounts, error) {
	var given Mounts
	if err := json.Unmarshal(raw, &given); err != nil || len(given) > maxMounts {
		return nil, reply.BadRequest("Invalid request: `mounts` should be a map of at most %d paths to drives.", maxMounts)
	}
	used := map[string]bool{}
	for at, m := range given {
		first, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
		if m.Mode == "" {
			m.Mode = modeWrite
		}
		switch {
		case !path.IsAbs(at) || path.Clean(at) != at || slices.Contains([]string{"", "proc", "sys", "dev", ".vercel"}, first) || strings.Contains(at, "\x00"):
			return nil, reply.BadRequest("Invalid request: `mounts` has an invalid path %q.", at)
		case !slices.Contains([]string{modeWrite, modeSnapshot, modeRead}, m.Mode):
			return nil, reply.BadRequest("Invalid request: `mounts.%s.mode` should be equal to one of the allowed values \"read-write, snapshot\".", at)
		case m.Drive == "":
			return nil, reply.BadRequest("Invalid request: `mounts.%s` missing required property `drive`.", at)
		case used[m.Drive]:
			return nil, reply.BadRequest("Invalid request: `mounts` has the drive %q twice.", m.Drive)
		}
		given[at], used[m.Drive] = m, true
	}
	return given, nil
}

// Info is what the API shows of a drive.
type Info struct {
	ID                 string `json:"id"`
	Name               string `json:"name"`
	ProjectID          string `json:"projectId"`
	Region             string `json:"region"`
	MaxSizeBytes       int64  `json:"maxSizeBytes"`
	CurrentSessionID   string `json:"currentSessionId,omitempty"` // that may write to it
	CurrentSandboxName string `json:"currentSandboxName,omitempty"`
	CreatedAt          int64  `json:"createdAt"`
	UpdatedAt          int64  `json:"updatedAt"`
}

type key struct{ project, name string }

type drive struct {
	info    Info
	order   int
	volume  *machine.Volume
	holders map[*Hold]bool // whether it may write
}

func (d *drive) busy() error {
	for h := range d.holders {
		return reply.NewError(http.StatusConflict, "conflict", fmt.Sprintf("Drive '%s' is attached to sandbox '%s'.", d.info.Name, h.sandbox))
	}
	return nil
}

// Store keeps the drives of all projects. Safe for concurrent use.
type Store struct {
	dir string

	mu     sync.Mutex
	drives map[key]*drive
	made   int
}

// New makes an empty store. Drives keep their files in dir, which exists.
func New(dir string) *Store { return &Store{dir: dir, drives: map[key]*drive{}} }

// Close removes every drive. No machine runs any more.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.drives {
		errs = append(errs, d.volume.Remove())
	}
	return errors.Join(errs...)
}

func notFound(name string) error {
	return reply.NotFound("Drive '%s' not found for this project.", name)
}

// Open reports the drive of want's project and name. Where there is none it makes
// one as want says.
func (s *Store) Open(want Info) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{want.ProjectID, want.Name}
	if d := s.drives[k]; d != nil {
		return d.info, nil
	}
	if len(s.drives) >= maxDrives {
		return Info{}, reply.NewError(http.StatusTooManyRequests, "resource_limit_exceeded", "There are too many drives.")
	}
	v, err := machine.NewVolume(filepath.Join(s.dir, want.ID))
	if err != nil {
		return Info{}, err
	}
	s.made++
	want.CreatedAt = time.Now().UnixMilli()
	want.UpdatedAt = want.CreatedAt
	s.drives[k] = &drive{info: want, order: s.made, volume: v, holders: map[*Hold]bool{}}
	return want, nil
}

// List reports the drives of project whose names begin with prefix, the oldest
// first.
func (s *Store) List(project, prefix string) []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*drive
	for k, d := range s.drives {
		if k.project == project && strings.HasPrefix(k.name, prefix) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *drive) int { return a.order - b.order })
	var out []Info
	for _, d := range list {
		out = append(out, d.info)
	}
	return out
}

// Delete removes a drive that no session has.
func (s *Store) Delete(project, name string) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.drives[key{project, name}]
	if d == nil {
		return Info{}, notFound(name)
	}
	if err := d.busy(); err != nil {
		return Info{}, err
	}
	delete(s.drives, key{project, name})
	return d.info, d.volume.Remove()
}

// Check reports which drive of m there is not.
func (s *Store) Check(project string, m Mounts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(project, m)
}

func (s *Store) check(project string, m Mounts) error {
	for _, at := range slices.Sorted(maps.Keys(m)) {
		if s.drives[key{project, m[at].Drive}] == nil {
			return notFound(m[at].Drive)
		}
	}
	return nil
}

// Hold is what a session has of drives.
type Hold struct {
	Mounts []machine.Mount

	store   *Store
	sandbox string
	drives  []*drive
}

// Attach gives the drives of m to a session, until Release.
func (s *Store) Attach(project string, m Mounts, session, sandbox string) (*Hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(project, m); err != nil {
		return nil, err
	}
	for _, mount := range m {
		d := s.drives[key{project, mount.Drive}]
		if d.info.CurrentSessionID != "" && mount.Mode == modeWrite {
			return nil, reply.NewError(http.StatusConflict, "conflict", fmt.Sprintf("Drive '%s' is attached to sandbox '%s'.", mount.Drive, d.info.CurrentSandboxName))
		}
	}
	h := &Hold{store: s, sandbox: sandbox}
	for at, mount := range m {
		d, write := s.drives[key{project, mount.Drive}], mount.Mode == modeWrite
		d.holders[h] = write
		if write {
			d.info.CurrentSessionID, d.info.CurrentSandboxName = session, sandbox
		}
		h.drives = append(h.drives, d)
		h.Mounts = append(h.Mounts, machine.Mount{Volume: d.volume, Path: at, Copy: !write})
	}
	return h, nil
}

// Release gives the drives back, once the machine has ended. It may be called
// more than once.
func (h *Hold) Release() {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for _, d := range h.drives {
		if d.holders[h] {
			d.info.CurrentSessionID, d.info.CurrentSandboxName = "", ""
			d.info.UpdatedAt = time.Now().UnixMilli()
		}
		delete(d.holders, h)
	}
}

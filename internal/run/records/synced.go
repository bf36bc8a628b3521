package records

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Place is a hosted disk that outlives a run, of a sandbox or of a task.
type Place struct {
	Sandbox, Task string // one of the two
	Where         string // the account; what was synced with another account does not count
}

// A synced file has a head, then paths and marks in turn, each followed by a NUL:
// names may hold any other byte.
const (
	syncedHead = "egressd synced 1"
	maxSynced  = 256 << 20
)

func (p Place) file() (string, error) {
	name, dir := p.Sandbox, sandboxDir(p.Sandbox)
	if name == "" {
		name, dir = p.Task, path.Join("tasks", p.Task)
	}
	if why := ValidName(name); why != "" {
		return "", fmt.Errorf("%q: %s", name, why)
	}
	return path.Join(dir, "synced"), nil
}

// Synced reports what a place and a workspace had in common after the last run: a
// mark for each path, and the stamp of the disk at that time. Both are empty if
// that is not known.
func (s *Store) Synced(p Place, workspace string) (stamp string, marks map[string]string, err error) {
	name, err := p.file()
	if err != nil {
		return "", nil, err
	}
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSynced+1))
	if err != nil {
		return "", nil, err
	}
	parts := strings.Split(string(data), "\x00")
	if len(data) > maxSynced || len(parts) < 5 || len(parts)%2 != 1 || parts[0] != syncedHead || parts[len(parts)-1] != "" {
		return "", nil, fmt.Errorf("%s: %w", name, ErrDamaged)
	}
	if parts[1] != p.Where || parts[2] != workspace {
		return "", nil, nil
	}
	marks = make(map[string]string, len(parts)/2)
	for rest := parts[4 : len(parts)-1]; len(rest) > 0; rest = rest[2:] {
		marks[rest[0]] = rest[1]
	}
	return parts[3], marks, nil
}

// SetSynced sets what Synced reports. Above 256 MiB it is not known.
func (s *Store) SetSynced(p Place, workspace, stamp string, marks map[string]string) error {
	name, err := p.file()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, part := range []string{syncedHead, p.Where, workspace, stamp} {
		b.WriteString(part + "\x00")
	}
	for path, mark := range marks {
		b.WriteString(path + "\x00" + mark + "\x00")
	}
	if b.Len() > maxSynced {
		if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	dir := path.Dir(name)
	if err := s.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return s.locked(dir, func() error { return s.replace(name, []byte(b.String())) })
}

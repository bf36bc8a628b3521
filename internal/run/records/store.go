package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// Store is a directory of records. It is safe for concurrent use, also by several
// processes: a change holds a lock on the record's directory and replaces the
// record whole. A record that cannot be read is reported and left as it is.
type Store struct {
	root *os.Root
	now  func() time.Time
}

// Open opens the store in dir, which it makes if there is none. now is the clock;
// nil is time.Now. The caller closes the store.
//
// Threat: another user of the machine reads what ran, or plants records ->
// directories are 0700, files 0600, and a store that belongs to another user or
// that others may open is refused.
func Open(dir string, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("records of launch: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("records of launch: %w", err)
	}
	if err := private(root); err != nil {
		root.Close()
		return nil, fmt.Errorf("records of launch in %s: %w", dir, err)
	}
	if now == nil {
		now = time.Now
	}
	return &Store{root: root, now: now}, nil
}

// Close closes the directory. Recorders of the store must be finished.
func (s *Store) Close() error { return s.root.Close() }

// Layout below the root.
const (
	sandboxes  = "sandboxes"
	recordFile = "sandbox.json"
	tasksFile  = "tasks.json"
	lockFile   = "lock"
)

func sandboxDir(name string) string { return path.Join(sandboxes, name) }

// maxRecord bounds a record's file.
const maxRecord = 4 << 20

// read decodes a record; versionOf finds its version. Unknown members are
// ignored, as long as the version is known.
func read[T any](s *Store, name string, versionOf func(*T) int) (T, error) {
	var v T
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return v, ErrNotFound
	}
	if err != nil {
		return v, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil || len(data) > maxRecord || versionOf(&v) != version {
		return v, fmt.Errorf("%s: %w", name, ErrDamaged)
	}
	return v, nil
}

// write replaces a record whole: a concurrent reader sees the old one.
func (s *Store) write(name string, v any) error {
	data, err := json.MarshalIndent(clean(v), "", "  ")
	if err != nil {
		return err
	}
	return s.replace(name, append(data, '\n'))
}

// replace writes a file whole or not at all.
func (s *Store) replace(name string, data []byte) error {
	temp := name + ".new"
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(temp, name)
	}
	return err
}

// locked runs f with the lock on dir.
func (s *Store) locked(dir string, f func() error) error {
	l, err := s.lock(path.Join(dir, lockFile), true)
	if err != nil {
		return err
	}
	defer l.Close()
	return f()
}

// Create makes the record of a new sandbox. The error is ErrExists if there is one
// of that name.
func (s *Store) Create(b Sandbox) error {
	if why := ValidName(b.Name); why != "" {
		return fmt.Errorf("sandbox %q: %s", b.Name, why)
	}
	dir := sandboxDir(b.Name)
	if err := s.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return s.locked(dir, func() error {
		_, err := s.sandbox(b.Name)
		if err == nil {
			return fmt.Errorf("sandbox %s %w", b.Name, ErrExists)
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		b.Version, b.Created = version, s.now().UTC()
		b.Updated = b.Created
		if b.Status == "" {
			b.Status = Active
		}
		if err := s.sealSandbox(&b); err != nil {
			return err
		}
		return s.write(path.Join(dir, recordFile), b)
	})
}

// Sandbox reports a sandbox. The error is ErrNotFound if there is none.
func (s *Store) Sandbox(name string) (Sandbox, error) {
	if why := ValidName(name); why != "" {
		return Sandbox{}, fmt.Errorf("sandbox %q: %s", name, why)
	}
	return s.sandbox(name)
}

func (s *Store) sandbox(name string) (Sandbox, error) {
	b, err := read(s, path.Join(sandboxDir(name), recordFile), func(b *Sandbox) int { return b.Version })
	if err != nil {
		return b, fmt.Errorf("sandbox %s: %w", name, err)
	}
	return b, nil
}

// Update changes the record of a sandbox, under its lock. The name stays. A record
// that is not Trusted does not become so.
func (s *Store) Update(name string, change func(*Sandbox)) error {
	return s.update(name, func(b *Sandbox) error {
		trusted := s.Trusted(*b)
		change(b)
		if trusted != nil {
			return nil
		}
		return s.sealSandbox(b)
	})
}

// Renew is Update by somebody who knows what the next run is made of: the record is
// Trusted afterwards.
func (s *Store) Renew(name string, change func(*Sandbox)) error {
	return s.update(name, func(b *Sandbox) error {
		change(b)
		return s.sealSandbox(b)
	})
}

func (s *Store) sealSandbox(b *Sandbox) (err error) {
	b.Seal, err = s.seal(b.binding())
	return err
}

func (s *Store) update(name string, change func(*Sandbox) error) error {
	if why := ValidName(name); why != "" {
		return fmt.Errorf("sandbox %q: %s", name, why)
	}
	if _, err := s.sandbox(name); err != nil {
		return err
	}
	return s.locked(sandboxDir(name), func() error {
		b, err := s.sandbox(name)
		if err != nil {
			return err
		}
		if err := change(&b); err != nil {
			return err
		}
		b.Name, b.Version, b.Updated = name, version, s.now().UTC()
		return s.write(path.Join(sandboxDir(name), recordFile), b)
	})
}

// Sandboxes lists all sandboxes by name. The error names records that could not be
// read; the list has the others.
func (s *Store) Sandboxes() ([]Sandbox, error) {
	names, err := s.names(sandboxes)
	if err != nil {
		return nil, err
	}
	var all []Sandbox
	var errs []error
	for _, name := range names {
		b, err := s.sandbox(name)
		switch {
		case errors.Is(err, ErrNotFound): // being made, or removed
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, b)
		}
	}
	return all, errors.Join(errs...)
}

// maxListed bounds the entries that one listing reads.
const maxListed = 100_000

// names lists a directory, sorted. A missing directory is empty.
func (s *Store) names(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes the record of a sandbox, its processes and their output. It fails
// while a process is running.
func (s *Store) Remove(name string) error {
	if _, err := s.Sandbox(name); err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	return s.locked(sandboxDir(name), func() error {
		all, err := s.Processes(name)
		for _, p := range all {
			if !p.Over() {
				return fmt.Errorf("sandbox %s: process %s is running", name, p.ID)
			}
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		return s.root.RemoveAll(sandboxDir(name))
	})
}

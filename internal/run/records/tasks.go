package records

import (
	"errors"
	"fmt"
	"time"
)

// Task is the snapshot from which the next run of a task continues.
type Task struct {
	Tier     string    `json:"tier"`
	Snapshot string    `json:"snapshotId"`
	Updated  time.Time `json:"updatedAt"`
}

type tasks struct {
	Version int             `json:"version"`
	Tasks   map[string]Task `json:"tasks"`
}

// maxTasks bounds the tasks; the oldest goes first.
const maxTasks = 10_000

func (s *Store) tasks() (tasks, error) {
	t, err := read(s, tasksFile, func(t *tasks) int { return t.Version })
	if errors.Is(err, ErrNotFound) {
		return tasks{Version: version, Tasks: map[string]Task{}}, nil
	}
	if t.Tasks == nil {
		t.Tasks = map[string]Task{}
	}
	return t, err
}

// Task reports the snapshot of a task. The error is ErrNotFound if it has none.
func (s *Store) Task(id string) (Task, error) {
	if why := ValidName(id); why != "" {
		return Task{}, fmt.Errorf("task %q: %s", id, why)
	}
	all, err := s.tasks()
	if err != nil {
		return Task{}, err
	}
	t, ok := all.Tasks[id]
	if !ok {
		return t, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	return t, nil
}

// SetTask sets the snapshot of a task, and reports the one that it replaces, or ""
// if there was none.
func (s *Store) SetTask(id, tier, snapshot string) (old string, err error) {
	if why := ValidName(id); why != "" {
		return "", fmt.Errorf("task %q: %s", id, why)
	}
	err = s.locked(".", func() error {
		all, err := s.tasks()
		if err != nil {
			return err
		}
		old = all.Tasks[id].Snapshot
		all.Tasks[id] = Task{Tier: tier, Snapshot: snapshot, Updated: s.now().UTC()}
		for len(all.Tasks) > maxTasks {
			oldest := id
			for name, t := range all.Tasks {
				if t.Updated.Before(all.Tasks[oldest].Updated) {
					oldest = name
				}
			}
			delete(all.Tasks, oldest)
		}
		return s.write(tasksFile, all)
	})
	return old, err
}

// DropTask forgets a task if its snapshot is still this one.
func (s *Store) DropTask(id, snapshot string) error {
	return s.locked(".", func() error {
		all, err := s.tasks()
		if err != nil {
			return err
		}
		if t, ok := all.Tasks[id]; !ok || t.Snapshot != snapshot {
			return nil
		}
		delete(all.Tasks, id)
		return s.write(tasksFile, all)
	})
}

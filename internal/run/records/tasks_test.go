package records

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

func TestTasks(t *testing.T) {
	s, dir := open(t)
	if _, err := s.Task("t"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	old, err := s.SetTask("t", "vercel", "snap_1")
	if err != nil || old != "" {
		t.Error(old, err)
	}
	old, err = s.SetTask("t", "vercel", "snap_2")
	if err != nil || old != "snap_1" {
		t.Error(old, err)
	}
	must(t, s.DropTask("t", "snap_1"))
	if task, err := s.Task("t"); err != nil || task.Snapshot != "snap_2" {
		t.Error(task, err)
	}
	must(t, s.DropTask("t", "snap_2"))
	if _, err := s.Task("t"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			other, err := Open(dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer other.Close()
			for n := range 10 {
				if _, err := other.SetTask(fmt.Sprintf("t%d-%d", i, n), "vercel", "snap"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := s.tasks(); err != nil || len(all.Tasks) != 80 {
		t.Errorf("%d tasks, %v", len(all.Tasks), err)
	}
}

package records

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"
)

// Of runs that leave a sandbox, at once or one after the other, one is the last.
func TestLeaving(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create(Sandbox{Name: "box", Tier: "vercel", Workspace: "/w"}); err != nil {
		t.Fatal(err)
	}
	const runs = 8
	var all []*Recorder
	for range runs {
		r, err := s.Start(Process{Sandbox: "box", Command: "c"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	lasts := make([]bool, runs)
	var leaving sync.WaitGroup
	for i, r := range all {
		leaving.Go(func() {
			last, err := s.MarkLeaving("box", r.Process().ID)
			if err != nil {
				t.Error(err)
			}
			lasts[i] = last
		})
	}
	leaving.Wait()
	n := 0
	for _, last := range lasts {
		if last {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d were the last", n)
	}
	for _, r := range all {
		code := 0
		if err := r.Finish("", &code, ""); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.MarkLeaving("box", "nothing"); err == nil {
		t.Error("a process that is not there left")
	}
}

// What a place and a workspace have in common comes back as it was, whatever the
// names, and not for another account or workspace.
func TestSynced(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	marks := map[string]string{"a": "f644 00", "new\nline": "l../x", "\xff\xfe": "d", "sp ace": "f755 ff"}
	for _, p := range []Place{{Sandbox: "box", Where: "t/p"}, {Task: "task", Where: "t/p"}} {
		if stamp, got, err := s.Synced(p, "/w"); stamp != "" || got != nil || err != nil {
			t.Errorf("before: %q, %v, %v", stamp, got, err)
		}
		if err := s.SetSynced(p, "/w", "stamp", marks); err != nil {
			t.Fatal(err)
		}
		if stamp, got, err := s.Synced(p, "/w"); stamp != "stamp" || !maps.Equal(got, marks) || err != nil {
			t.Errorf("%q, %q, %v", stamp, got, err)
		}
		if stamp, _, err := s.Synced(p, "/other"); stamp != "" || err != nil {
			t.Error("another workspace's")
		}
		p.Where = "t/q"
		if stamp, _, err := s.Synced(p, "/w"); stamp != "" || err != nil {
			t.Error("another account's")
		}
	}
	if _, _, err := s.Synced(Place{Task: "../x"}, "/w"); err == nil {
		t.Error("a name that leads out")
	}
	if err := s.replace("sandboxes/box/synced", []byte("egressd synced 2\x00a\x00b\x00c\x00")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Synced(Place{Sandbox: "box"}, "/w"); err == nil {
		t.Error("read a file of another version")
	}
}

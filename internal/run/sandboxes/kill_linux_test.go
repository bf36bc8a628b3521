package sandboxes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"egressd/internal/run/records"
)

// A record of a running process names another process of the person: by a number
// that somebody wrote there, or that the kernel gave away again.
func TestKillsNobodyElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "egressd")
	store, err := records.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Create(records.Sandbox{Name: "box", Tier: "process", Workspace: "/"}); err != nil {
		t.Fatal(err)
	}
	victim := exec.Command("/bin/sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- victim.Wait() }()
	started, err := records.StartedAt(victim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{store: store}
	for _, tt := range []struct {
		name     string
		launcher int
		started  string
		plant    func(record string) string
		says     error // nil: the launcher counts as gone
	}{
		{"recycled", victim.Process.Pid, "another boot/1", nil, nil},
		{"planted", os.Getpid(), started, func(record string) string {
			return strings.Replace(record, `"launcher": `+strconv.Itoa(os.Getpid()), `"launcher": `+strconv.Itoa(victim.Process.Pid), 1)
		}, records.ErrChanged},
		{"its own", victim.Process.Pid, started, nil, nil}, // last: the victim ends
	} {
		rec, err := store.Start(records.Process{Sandbox: "box", Command: "sleep", Metadata: records.Metadata{Launcher: tt.launcher, Started: tt.started}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "sandboxes/box/processes", rec.Process().ID+".json")
		if tt.plant != nil {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.plant(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.signal(rec.Process(), syscall.SIGTERM); !errors.Is(err, tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.name == "its own" {
			if err := <-ended; err == nil {
				t.Error("the launcher itself was not signalled")
			}
		} else if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("%s: the victim is gone: %v", tt.name, err)
		}
		if err := rec.Finish("", nil, ""); err != nil {
			t.Error(err)
		}
	}
}

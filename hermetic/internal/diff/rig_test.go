package diff_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// rig is a workspace with commands in it.
type rig struct {
	t   *testing.T
	dir string
	c   *command.Call
	ctx context.Context
}

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)
		if err := os.Chtimes(full, at, at); err != nil {
			t.Fatal(err)
		}
	}
	f, err := vfs.Open(vfs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, b, stop := limits.New(t.Context(), limits.Limits{})
	t.Cleanup(func() { stop(); _ = f.Close() })
	s := &command.Session{FS: f, Budget: b, Now: time.Now}
	return &rig{t, dir, &command.Call{Dir: "/", Umask: 0o022, Session: s}, ctx}
}

// run reports the output, errors after it, and the status.
func (r *rig) run(stdin, line string) (string, int) {
	var out bytes.Buffer
	args := strings.Fields(line)
	status := commands()[args[0]](r.ctx, r.c.With(args, strings.NewReader(stdin), &out, &out))
	return out.String(), status
}

func (r *rig) file(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "(none)"
	}
	return string(b)
}

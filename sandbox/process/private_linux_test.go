package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
)

// TestDetourInTMPDIR makes no directory outside the private roots.
func TestDetourInTMPDIR(t *testing.T) {
	dir := outsideDir(t)
	made := filepath.Join(dir, "made")
	env := []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp/../" + made, "XDG_RUNTIME_DIR=/run/../" + made}
	res := run(t, &Backend{}, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: dir, Env: env})
	if res.err != nil || res.ExitCode != 0 {
		t.Fatalf("exit code %d, %v: %s", res.ExitCode, res.err, res.out)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a detour in TMPDIR made a directory of the host")
	}
}

// TestPrivateWorkingDirectory says that an empty directory is what it is.
func TestPrivateWorkingDirectory(t *testing.T) {
	for dir, want := range map[string]bool{"/tmp": true, "/": false} {
		var log bytes.Buffer
		b := &Backend{Log: slog.New(slog.NewTextHandler(&log, nil))}
		if res := run(t, b, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: dir}); res.ExitCode != 0 {
			t.Fatalf("%s: exit code %d: %s", dir, res.ExitCode, res.out)
		}
		if got := strings.Contains(log.String(), "private inside"); got != want {
			t.Errorf("%s: warned %v, want %v: %s", dir, got, want, log.String())
		}
	}
}

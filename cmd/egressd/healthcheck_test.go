//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// healthcheck runs egressd healthcheck and reports its exit code and words.
func healthcheck(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	cmd := exec.Command("egressd", append([]string{"healthcheck"}, args...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// The health check follows the daemon: well, draining, gone.
func TestHealthcheck(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "admin.sock")
	p := start(t, "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", addr)
	if code, text := healthcheck(t, "--admin", addr); code != 0 || text != "ready\n" {
		t.Errorf("a daemon that is ready: %d %q", code, text)
	}
	p.kill()
	if code, text := healthcheck(t, "--admin", addr); code != 1 || !strings.Contains(text, "is egressd running") || strings.Count(text, "\n") != 1 {
		t.Errorf("a daemon that is gone: %d %q", code, text)
	}
}
